"""Group caps: a unit keeps a few of its groups, and its contribution to each of them is capped."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

from dpsql.bound.by_unit import cap, sum_units
from dpsql.bound.cuts import Cut, FewerGroups, FewerRows
from dpsql.bound.first_groups import first_groups
from dpsql.bound.rows import Grids, UnitRows
from dpsql.bound.sensitivity import WEIGHT_BITS, SameForAll, Sensitivity
from dpsql.catalog.statistic import Statistic
from dpsql.ir.statements import Query
from dpsql.plan.nodes import Cells, Measurement


@dataclass(frozen=True, slots=True)
class GroupCaps(SameForAll):
    """A unit keeps at most ``groups`` groups, and counts with at most ``per_group`` rows in each.

    Claim: a unit changes at most ``groups`` groups, its count in each by at most ``per_group``.
    Assumes: where no ``limit`` is set, the plan gives a unit no more than ``groups`` groups.
    Argument: the groups that a unit keeps are the first in an order that depends only on the salt
        and the unit's own rows. In each of them its number of rows is capped.
    """

    groups: int
    limit: bool
    per_group: int
    size: int = 1
    name: ClassVar[str] = "group caps"
    bits: ClassVar[int] = 0
    bin_bits: ClassVar[int] = WEIGHT_BITS
    """The cap becomes a weight of the unit's rows in a group, so that no value is preferred."""
    reads_units: ClassVar[bool] = True
    most_read: ClassVar[int | None] = None
    weights: ClassVar[None] = None

    @property
    def rows_in_group(self) -> int:
        """The cap."""
        return self.per_group

    @property
    def counts(self) -> Sensitivity:
        """One number in each kept group moves, by the cap at most."""
        k, c = self.groups, self.per_group
        return Sensitivity(Fraction(k * c), Fraction(k * c * c))

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """Groups beyond the first, and rows beyond the cap."""
        groups = (FewerGroups(self.groups),) if self.limit else ()
        return (*groups, FewerRows(self.per_group, in_group=True))

    def touched(self, _: Cells | None) -> int:
        """The number of kept groups."""
        return self.groups

    def bounds(self, _: Statistic) -> bool:
        """Every kind: the contribution of a unit to a group stands in one row."""
        return True

    def keeps_all(self, most: int) -> bool:
        """A unit with no more rows than the cap loses none, if no group is left out."""
        return not self.limit and self.per_group >= most

    def apply(self, measurement: Measurement, grids: Grids, rows: UnitRows) -> Query:
        """The sums of the capped contributions of units to the groups that they keep."""
        groups, few = first_groups(measurement, self, grids, rows)
        cut = partial(cap, per_group=self.per_group)
        return sum_units(measurement, self, grids, rows, groups, cut, few)
