"""The least and greatest value of a number: what arguments and results of functions lie between."""

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
# double nearest to the true result, and "nearest" never swaps two numbers. So whatever rises or
# falls between the ends of its arguments stays between the nearest doubles of its own ends.
# A double that is open above may be NaN, which engines order above everything; so a result of it is, too.


def domain_between(kind: Kind, ends: Ends, *, integral: bool = False) -> Domain:
    """The values of a result between these ends; those of doubles are moved to the nearest doubles."""
    low, high = ends
    if kind is not Kind.INTEGER:
        return interval(*nearest((low, high)), integral=integral)
    return whole_numbers(low, high)


def ends_as(argument: Expression, kind: Kind) -> Ends:
    """The ends of an argument once the engine has it as a number of ``kind``."""
    ends = numbers(argument.shape.domain)
    return nearest(ends) if Kind.DOUBLE in (kind, argument.shape.kind) else ends


def may_be_nan(args: tuple[Expression, ...]) -> bool:
    """Whether an argument is a double that no end bounds above: NaN is above all numbers."""
    return any(a.shape.kind is Kind.DOUBLE and numbers(a.shape.domain)[1] is None for a in args)


def expect_numbers(args: tuple[Expression, ...], count: int, what: str) -> Kind:
    """The common kind of so many numbers; ``Mismatch`` for anything else."""
    expect(args, count, what)
    for a in args:
        expect_kind(a, NUMERIC, what)
    return common_kind(args, what)


def is_small(ends: Ends) -> bool:
    """Whether whole numbers between these ends stay within 64 bits, whatever rounding adds."""
    return all(e is not None and abs(e) < 2**62 for e in ends)


def map_ends(a: Ends, f: Callable[[Fraction], Fraction]) -> Ends:
    """The ends of a rising function of a number."""
    return (None if a[0] is None else f(a[0]), None if a[1] is None else f(a[1]))


def exclude_zero(ends: Ends) -> bool:
    """Whether no number between these ends is 0."""
    low, high = ends
    return low is not None and high is not None and (low > 0 or high < 0)
