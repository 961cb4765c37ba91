"""Prepared rows: a copy of the table numbers the rows of each unit; only the first are read."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpsql.bound.cuts import Cut, FewerRows
from dpsql.bound.one_row import sum_groups
from dpsql.bound.rows import Grids, UnitRows
from dpsql.bound.sensitivity import SameForAll, Sensitivity, is_of_units
from dpsql.catalog.statistic import Statistic
from dpsql.ir.statements import Query
from dpsql.plan.nodes import Cells, Measurement


@dataclass(frozen=True, slots=True)
class PreparedRows(SameForAll):
    """At most ``rows`` rows of a unit are read, each of weight one.

    Claim: no more than ``rows`` rows of a unit are in any sum.
    Assumes: rows are read by ``Reading.limited(rows)``: see ``bound.reading``.
    Argument: of a unit, only its first rows are read, in an order that depends only on a salt and
        its own rows. Each adds its clamped value, or one, to one group.
    """

    rows: int
    groups: int
    size: int = 1
    name: ClassVar[str] = "prepared rows"
    bits: ClassVar[int] = 0
    bin_bits: ClassVar[int] = 0
    reads_units: ClassVar[bool] = False

    @property
    def rows_in_group(self) -> int:
        """All of its rows may be in one group."""
        return self.rows

    @property
    def counts(self) -> Sensitivity:
        """Each row moves the number of one group by one; all rows may be in the same group."""
        return Sensitivity(Fraction(self.rows), Fraction(self.rows) ** 2)

    @property
    def most_read(self) -> int | None:
        """As many rows as count."""
        return self.rows

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """Rows beyond those that are read."""
        return (FewerRows(self.rows),)

    def touched(self, _: Cells | None) -> int:
        """Each row is in one group.

        >>> PreparedRows(rows=5, groups=5).touched(Cells("", 64))
        5
        """
        return self.groups

    def bounds(self, statistic: Statistic) -> bool:
        """Sums over rows: the statement does not know which rows belong to the same unit."""
        return not is_of_units(statistic)

    def keeps_all(self, most: int) -> bool:
        """A unit with no more rows than are read loses none."""
        return self.rows >= most

    def apply(self, measurement: Measurement, grids: Grids, rows: UnitRows) -> Query:
        """The sums of each group over the rows that are read."""
        assert all(map(self.bounds, measurement.statistics))
        return sum_groups(measurement, self, grids, rows)
