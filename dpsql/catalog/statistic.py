"""Primitive statistics: the integers that an engine is asked for, and how they are finished.

Every private aggregate is a few of these: a number of rows, units or values, a total of clamped
values, or a value chosen by how many rows have which. Each has a bound on what one row adds, so
each has a sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpsql.ir.expressions import Column, Expression, Shape
from dpsql.policy.types import Kind, Scalar

Cap = tuple[Fraction, Fraction]
"""The least and the most that a unit adds to a group that it is in."""


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows satisfy ``where`` (all, when None). One row adds 0 or 1.

    With a ``cap`` the number of a unit's rows in a group counts as the nearer of both ends.
    """

    where: Expression | None = None
    cap: Cap | None = None

    @property
    def shape(self) -> Shape:
        """A whole number."""
        return Shape(Kind.INTEGER, nullable=False)


@dataclass(frozen=True, slots=True)
class Units:
    """How many units have a row that satisfies ``where``. One unit adds 0 or 1 to a group."""

    where: Expression | None = None

    @property
    def shape(self) -> Shape:
        """A whole number."""
        return Shape(Kind.INTEGER, nullable=False)


@dataclass(frozen=True, slots=True)
class Values:
    """How many different values there are, of rows that satisfy ``where``; NULL is none.

    Several ``values`` are counted by their combinations, those with NULLs too. The engine lets
    each unit bring a limited number of pairs of group and value.
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

    The engine clamps ``value`` to ``low .. high`` first, whatever was declared; NaN, which is above
    all other numbers, is ``high``. ``whole`` says
    that values are integers and the total is shown as one. With a ``cap`` what a unit adds to a
    group counts as the nearer of both ends; ``averaged`` units add the mean of their values
    instead of the sum, less ``centre``. A unit without a value adds nothing. Values are rounded with
    ``extra_bits`` more than usual, where differences of totals are what matters.
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
    """The value with a share ``fraction`` of the rows at or below it, of those where ``where`` holds.

    Values count as the nearer of ``low`` and ``high`` when they are beyond, NaN as ``high``; NULL
    does not count. ``members`` lists texts or truth values in order; what is not among them does not count.
    ``extreme`` is for fractions 0 and 1: not the very last row is meant, but one as far
    from the end as the choice may err, so that the answer is seldom a value that no row has.
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
        """Always a value: where there are no rows, any of the range."""
        return Shape(self.kind, nullable=False)

    @property
    def steepness(self) -> Fraction:
        """How far one row can move the rank that a value misses, up or down."""
        return max(self.fraction, 1 - self.fraction)

    @property
    def span(self) -> Fraction:
        """How far one row can move the difference of what two values miss."""
        return 2 * self.steepness


@dataclass(frozen=True, slots=True)
class Mode:
    """The commonest value among ``members``, or all steps from ``low`` to ``high``.

    Values that are not among them do not count.
    """

    value: Expression
    low: Scalar | None
    high: Scalar | None
    members: tuple[Scalar, ...] | None
    kind: Kind
    where: Expression | None = None

    @property
    def shape(self) -> Shape:
        """Always a value: where there are no rows, any of them."""
        return Shape(self.kind, nullable=False)

    @property
    def span(self) -> Fraction:
        """How far one row can move the difference of two counts."""
        return Fraction(1)


Ranked = Quantile | Mode
Statistic = Rows | Units | Values | Total | Ranked
Apart = Values | Ranked
"""Those that the engine looks for in a query of their own, beside all others."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """An aggregate as statistics, and its value as an expression over their noisy columns."""

    statistics: tuple[Statistic, ...]
    finish: Callable[[tuple[Column, ...]], Expression]
