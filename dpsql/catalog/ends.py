"""Ends of numbers: the least and greatest values of the arguments and results of functions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpsql.catalog.function import common_kind, expect, expect_kind
from dpsql.ir.domain import Domain, interval, nearest, numbers, whole_numbers
from dpsql.ir.expressions import Expression
from dpsql.policy.types import Kind

NUMERIC = (Kind.INTEGER, Kind.DOUBLE)
Ends = tuple[Fraction | None, Fraction | None]

# Why the ends of double results hold exactly: an engine's ``+ - * /``, ``sqrt`` and casts give the
# double nearest to the true result, and rounding to nearest is monotone. So the result of a
# monotone function stays between the doubles nearest to the exact ends of the result.
# A double without an upper end may be NaN, which engines order above everything. So may a result
# that is computed from it.


def domain_between(kind: Kind, ends: Ends, *, integral: bool = False) -> Domain:
    """The domain of a result between these ends; for doubles, the ends become nearest doubles."""
    low, high = ends
    if kind is not Kind.INTEGER:
        return interval(*nearest((low, high)), integral=integral)
    return whole_numbers(low, high)


def ends_as(argument: Expression, kind: Kind) -> Ends:
    """The ends of an argument after the engine has converted it to ``kind``."""
    ends = numbers(argument.shape.domain)
    return nearest(ends) if Kind.DOUBLE in (kind, argument.shape.kind) else ends


def may_be_nan(args: tuple[Expression, ...]) -> bool:
    """Whether an argument is a double without an upper end. NaN is ordered above all numbers."""
    return any(a.shape.kind is Kind.DOUBLE and numbers(a.shape.domain)[1] is None for a in args)


def expect_numbers(args: tuple[Expression, ...], count: int, what: str) -> Kind:
    """The common kind of exactly ``count`` numbers; raises ``Mismatch`` for other arguments."""
    expect(args, count, what)
    for a in args:
        expect_kind(a, NUMERIC, what)
    return common_kind(args, what)


def is_small(ends: Ends) -> bool:
    """Whether whole numbers between these ends fit in 64 bits, with room for rounding."""
    return all(e is not None and abs(e) < 2**62 for e in ends)


def map_ends(a: Ends, f: Callable[[Fraction], Fraction]) -> Ends:
    """The ends of the result of an increasing function ``f``."""
    return (None if a[0] is None else f(a[0]), None if a[1] is None else f(a[1]))


def exclude_zero(ends: Ends) -> bool:
    """Whether no number between these ends is 0."""
    low, high = ends
    return low is not None and high is not None and (low > 0 or high < 0)
