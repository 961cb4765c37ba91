"""Weights and groups: rows weigh less where a unit has many, and it keeps a few of its groups."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpsql.bound.by_unit import sum_units
from dpsql.bound.cuts import Cut, FewerGroups
from dpsql.bound.first_groups import first_groups
from dpsql.bound.grid import Grid
from dpsql.bound.row_weights import Weights, lighter, weighed_counts
from dpsql.bound.rows import Grids, UnitRows
from dpsql.bound.sensitivity import WEIGHT_BITS, SameForAll, Sensitivity
from dpsql.catalog.statistic import Rows, Statistic, Total, Units
from dpsql.ir.statements import Query, Term
from dpsql.plan.nodes import Cells, Measurement


@dataclass(frozen=True, slots=True)
class WeightsAndGroups(SameForAll):
    """A unit keeps at most ``groups`` groups, and its rows weigh at most ``rows`` in all.

    Claim: a unit changes at most ``groups`` groups, and its rows weigh at most ``rows`` in all of
        them, in steps of ``2**-bits``; where they are ``valued``, their contribution to each sum is
        at most ``rows`` times the farthest end of its range.
    Assumes: rows are the same in each place that reads them.
    Argument: weights are those of ``RowWeights``, computed over all rows of the unit, so the rows
        in the kept groups weigh no more. The kept groups are chosen as in ``GroupCaps``.
    """

    rows: int | Fraction
    groups: int
    limit: bool
    bits: int = WEIGHT_BITS
    valued: bool = False
    size: int = 1
    name: ClassVar[str] = "weights and groups"
    reads_units: ClassVar[bool] = True
    most_read: ClassVar[int | None] = None

    @property
    def weights(self) -> Weights:
        """The strategy itself, which has the fields of weights."""
        return self

    @property
    def bin_bits(self) -> int:
        """Each row counts by its weight."""
        return self.bits

    @property
    def rows_in_group(self) -> int:
        """All of its rows may be in one group."""
        return int(self.rows)

    @property
    def counts(self) -> Sensitivity:
        """The sum of the weights: all may be in one group, and dropping groups only lowers it."""
        return weighed_counts(self)

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """Groups beyond the first, and the weights of units with more rows."""
        groups = (FewerGroups(self.groups),) if self.limit else ()
        return (*groups, lighter(self))

    def touched(self, _: Cells | None) -> int:
        """The number of kept groups."""
        return self.groups

    def bounds(self, statistic: Statistic) -> bool:
        """Every kind; where the weights are valued, only sums of values and numbers of units."""
        return not self.valued or isinstance(statistic, Units | Total)

    def keeps_all(self, most: int) -> bool:
        """A unit with no more rows than the limit keeps full weights and all its groups."""
        return not self.limit and not self.valued and self.rows >= most

    def apply(self, measurement: Measurement, grids: Grids, rows: UnitRows) -> Query:
        """The weighted sums over units in the groups that they keep."""
        groups, few = first_groups(measurement, self, grids, rows)
        return sum_units(measurement, self, grids, rows, groups, _whole, few)


def _whole(_: Rows | Total, value: Term, __: Grid | None) -> Term:
    """The value unchanged: the weights have already bounded it."""
    return value
