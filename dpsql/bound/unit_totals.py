"""Unit totals: the rows of a unit, which are all in one group, are added up and then capped."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

from dpsql.bound.by_unit import by_unit, cap, sum_units
from dpsql.bound.cuts import Cut, FewerRows
from dpsql.bound.rows import Grids, UnitRows
from dpsql.bound.sensitivity import WEIGHT_BITS, SameForAll, Sensitivity
from dpsql.catalog.statistic import Statistic
from dpsql.ir.statements import Query
from dpsql.plan.nodes import Cells, Measurement


@dataclass(frozen=True, slots=True)
class UnitTotals(SameForAll):
    """A unit is in one group, and its contribution is capped to that of ``per_group`` rows.

    Claim: a unit adds at most ``per_group`` rows to the one group that it is in, and to a sum at
        most ``per_group`` times the farthest end of the range.
    Assumes: no unit has rows in two groups.
    Argument: all rows of a unit are added up in one row of ``by_unit``, which is capped before the
        rows of different units are added up.
    """

    per_group: int
    size: int = 1
    name: ClassVar[str] = "unit totals"
    groups: ClassVar[int] = 1
    bits: ClassVar[int] = 0
    bin_bits: ClassVar[int] = WEIGHT_BITS
    """The cap becomes a weight of all rows of the unit, so that no value is preferred."""
    reads_units: ClassVar[bool] = True
    most_read: ClassVar[int | None] = None

    @property
    def rows_in_group(self) -> int:
        """The cap."""
        return self.per_group

    @property
    def counts(self) -> Sensitivity:
        """One number moves by the cap."""
        return Sensitivity(Fraction(self.per_group), Fraction(self.per_group) ** 2)

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """Rows beyond the cap."""
        return (FewerRows(self.per_group),)

    def touched(self, _: Cells | None) -> int:
        """Its only group."""
        return 1

    def bounds(self, _: Statistic) -> bool:
        """Every kind: the contribution of a unit to its group stands in one row."""
        return True

    def keeps_all(self, most: int) -> bool:
        """A unit with no more rows than the cap loses none."""
        return self.per_group >= most

    def apply(self, measurement: Measurement, grids: Grids, rows: UnitRows) -> Query:
        """The sums of the capped contributions of units."""
        cut = partial(cap, per_group=self.per_group)
        return sum_units(measurement, self, grids, rows, by_unit(measurement, rows), cut)
