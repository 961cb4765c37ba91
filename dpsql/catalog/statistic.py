"""Primitive statistics: the integers that an engine computes, and how a result is made from them.

Every private aggregate consists of a few of these: a number of rows, units or values, a total of
clamped values, or a value chosen by how many rows have each value. For each statistic the
contribution of one row is bounded, so each has a sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpsql.ir.expressions import Column, Expression, Shape
from dpsql.policy.types import Kind, Scalar

Cap = tuple[Fraction, Fraction]
"""The least and the greatest contribution of a unit to a group that it is in."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The number of rows that satisfy ``where`` (all rows if None). One row adds 0 or 1.

    With a ``cap`` the number of a unit's rows in a group is clamped to it.
    """

    where: Expression | None = None
    cap: Cap | None = None

    @property
    def shape(self) -> Shape:
        """A whole number."""
        return Shape(Kind.INTEGER, nullable=False)


@dataclass(frozen=True, slots=True)
class Units:
    """The number of units with a row that satisfies ``where``. One unit adds 0 or 1 to a group."""

    where: Expression | None = None

    @property
    def shape(self) -> Shape:
        """A whole number."""
        return Shape(Kind.INTEGER, nullable=False)


@dataclass(frozen=True, slots=True)
class Values:
    """The number of different values in rows that satisfy ``where``, without NULL.

    For several ``values`` their combinations are counted, including those with NULLs. The engine
    bounds the number of pairs of group and value that one unit contributes.
    """

    values: tuple[Expression, ...]
    where: Expression | None = None

    @property
    def shape(self) -> Shape:
        """A whole number."""
        return Shape(Kind.INTEGER, nullable=False)


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of ``value - centre`` over rows where it is not NULL and ``where`` holds.

    The engine clamps ``value`` to ``low .. high`` first, whatever was declared. NaN is ordered
    above all other numbers, so it becomes ``high``. ``whole`` says that values are integers and
    that the total is shown as an integer. With a ``cap`` the contribution of a unit to a group is
    clamped to it. With ``averaged`` a unit contributes the mean of its values minus ``centre``,
    instead of the sum. A unit without a value adds nothing. Values are rounded with ``extra_bits``
    more bits than usual, for results that depend on small differences of totals.
    """

    value: Expression
    low: Fraction
    high: Fraction
    centre: Fraction = Fraction(0)
    whole: bool = False
    where: Expression | None = None
    cap: Cap | None = None
    averaged: bool = False
    extra_bits: int = 0

    @property
    def shape(self) -> Shape:
        """A whole number for whole values, else a double."""
        return Shape(Kind.INTEGER if self.whole else Kind.DOUBLE, nullable=False)


@dataclass(frozen=True, slots=True)
class Quantile:
    """The value with a share ``fraction`` of the rows at or below it; only rows of ``where`` count.

    Values are clamped to ``low .. high``, with NaN as ``high``. NULL does not count. ``members``
    lists texts or truth values in order; a value that is not listed does not count. ``extreme`` is
    for the fractions 0 and 1: the target is not the very last row, but one as many ranks from the
    end as the choice may be off. So the answer is seldom a value beyond all rows.
    """

    value: Expression
    low: Scalar
    high: Scalar
    fraction: Fraction
    extreme: bool = False
    kind: Kind = Kind.DOUBLE
    where: Expression | None = None
    members: tuple[Scalar, ...] | None = None

    @property
    def shape(self) -> Shape:
        """Never NULL: without rows, the result is any value of the range."""
        return Shape(self.kind, nullable=False)

    @property
    def steepness(self) -> Fraction:
        """The most by which one row changes the distance of a value from the target rank."""
        return max(self.fraction, 1 - self.fraction)

    @property
    def span(self) -> Fraction:
        """The most by which one row changes the difference of the distances of two values."""
        return 2 * self.steepness


@dataclass(frozen=True, slots=True)
class Mode:
    """The most frequent value among ``members``, or among all steps from ``low`` to ``high``.

    Other values do not count.
    """

    value: Expression
    low: Scalar | None
    high: Scalar | None
    members: tuple[Scalar, ...] | None
    kind: Kind
    where: Expression | None = None

    @property
    def shape(self) -> Shape:
        """Never NULL: without rows, the result is any of the possible values."""
        return Shape(self.kind, nullable=False)

    @property
    def span(self) -> Fraction:
        """The most by which one row changes the difference of two counts."""
        return Fraction(1)


Ranked = Quantile | Mode
Statistic = Rows | Units | Values | Total | Ranked
Apart = Values | Ranked
"""The statistics that need an engine query of their own, apart from all others."""


Finish = Callable[[tuple[Column, ...]], Expression]
"""The result of an aggregate, from the noisy columns of its statistics."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """An aggregate as statistics, and its result as an expression over their noisy columns.

    ``mean`` is the total and the count of a mean of values, less the middle of their range. The
    result says nothing if this mean may be any value: see ``plan.noise_alone``.
    """

    statistics: tuple[Statistic, ...]
    finish: Finish
    mean: tuple[Total, Rows | Units] | None = None
