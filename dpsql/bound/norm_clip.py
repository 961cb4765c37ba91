"""Norm clip: each unit is scaled so that its counts over all groups have a bounded norm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpsql.bound.by_unit import by_unit, columns, sum_units
from dpsql.bound.cuts import Cut, SmallerCounts
from dpsql.bound.grid import Grid
from dpsql.bound.rows import Grids, UnitRows, keep
from dpsql.bound.sensitivity import WEIGHT_BITS, SameForAll, Sensitivity, is_of_units
from dpsql.catalog.statistic import Rows, Statistic, Total
from dpsql.ir.statements import (
    Alias,
    CaseWhen,
    Cast,
    Fold,
    Name,
    Number,
    Op,
    Over,
    Query,
    Select,
    Term,
)
from dpsql.plan.nodes import Cells, Measurement


@dataclass(frozen=True, slots=True)
class NormClip(SameForAll):
    """A unit may be in all ``groups`` groups; the Euclidean norm of its counts is at most ``norm``.

    Claim: the Euclidean norm of a unit's contribution to all counts is at most ``norm``, in steps
        of ``2**-bits``; its sum in a group is at most its count there times the farthest end of the
        range.
    Assumes: the engine's doubles are those of IEEE 754.
    Argument: all groups of a unit get the same factor, which is the smaller of one and ``norm``
        over the norm of its counts. It is rounded down to the grid of weights, so that rounding
        never adds to the norm. Totals are scaled by the same factor.
    """

    groups: int
    norm: Fraction
    bits: int = WEIGHT_BITS
    size: int = 1
    name: ClassVar[str] = "norm clip"
    reads_units: ClassVar[bool] = True
    most_read: ClassVar[int | None] = None

    @property
    def bin_bits(self) -> int:
        """Each row of a unit weighs the unit's factor."""
        return self.bits

    @property
    def rows_in_group(self) -> int:
        """No single count is above the norm of all counts."""
        return math.ceil(self.norm)

    @property
    def counts(self) -> Sensitivity:
        """The norm; a vector with at most k non-zero cells has L1 <= sqrt(k) L2 <= k L2."""
        return Sensitivity(self.groups * self.norm, self.norm**2)

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """The weights of units whose counts have a larger norm."""
        return (SmallerCounts(self.norm),)

    def touched(self, _: Cells | None) -> int:
        """All groups: the factor leaves out none."""
        return self.groups

    def bounds(self, statistic: Statistic) -> bool:
        """Sums over rows: a norm of counts does not bound numbers of units."""
        return not is_of_units(statistic)

    def keeps_all(self, _: int) -> bool:
        """It may scale down any unit with several rows."""
        return False

    def apply(self, measurement: Measurement, grids: Grids, rows: UnitRows) -> Query:
        """The sums of the scaled contributions of units."""
        groups = by_unit(measurement, rows, with_number=True)
        wide = Op("*", (Cast(Name("n"), "hugeint"), Name("n")))
        squares = Over(Fold("sum", wide), tuple(map(Name, rows.units)))
        items = (*keep(tuple(columns(groups))), ("factor", factor(self, squares, self.bits)))
        scaled = Select(Alias(groups, "l"), items)
        return sum_units(measurement, self, grids, rows, scaled, self._scale)

    def _scale(self, statistic: Rows | Total, value: Term, _: Grid | None) -> Term:
        """A contribution times its factor: counts in steps of the factor, sums in grid steps."""
        scaled = Op("*", (value, Name("factor")))
        if isinstance(statistic, Total):
            return Op("//", (scaled, Number(1 << self.bits)))
        return scaled


def factor(bounding: NormClip, squares: Term, bits: int) -> Term:
    """The factor, in steps of ``2**-bits``, that clips a norm with square ``squares``."""
    one = 1 << bits
    share = Op("/", (Number(int(bounding.norm * one)), Op("sqrt", (Cast(squares, "double"),))))
    inside = Op("greatest", (Number(1), Op("least", (Number(one), Op("floor", (share,))))))
    less = Op("-", (Cast(inside, "bigint"), Number(1)))
    fits = Op("<=", (squares, Number(int(bounding.norm**2))))
    return CaseWhen(((fits, Number(one)),), less)


def least_norm(groups: int, per_group: int) -> Fraction:
    """A norm that clips no unit with ``per_group`` rows in ``groups`` groups, and is hardly larger.

    >>> float(least_norm(2, 1))
    1.4143
    """
    return Fraction(math.isqrt(groups * 10**8) + 1, 10**4) * per_group
