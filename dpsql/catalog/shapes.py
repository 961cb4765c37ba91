"""Types and bounds of the results of aggregates over the rows of one unit."""

from __future__ import annotations

from fractions import Fraction

from dpsql.catalog.functions.conditional import as_kind
from dpsql.ir.domain import ANYTHING, Domain, interval, numbers
from dpsql.ir.expressions import Expression, Shape
from dpsql.policy.types import Kind, total_type

Arguments = tuple[Expression, ...]


def count_shape(_: Arguments, rows: int | None) -> Shape:
    """A number of rows."""
    return Shape(Kind.INTEGER, False, interval(0, rows, integral=True))


def sum_shape(args: Arguments, rows: int | None) -> Shape:
    """A sum: its bounds are those of a value, times the most rows."""
    shape = args[0].shape
    if shape.kind is Kind.NULL:  # SUM(NULL) is a number too
        return Shape(Kind.INTEGER)
    low, high = numbers(shape.domain)
    name = total_type(shape.type_name)
    if rows is None or low is None or high is None:
        return Shape(shape.kind, type_name=name)
    ends = min(low, low * rows), max(high, high * rows)
    return Shape(shape.kind, True, bounded_numbers(ends, shape.kind), name)


def mean_shape(args: Arguments, _: int | None) -> Shape:
    """A mean: it lies between the bounds of the values."""
    return Shape(Kind.DOUBLE, True, bounded_numbers(numbers(args[0].shape.domain), Kind.DOUBLE))


def same_shape(args: Arguments, _: int | None) -> Shape:
    """One of the values."""
    return args[0].shape.optional()


def rank_shape(args: Arguments, _: int | None) -> Shape:
    """One of the values; a number becomes a double."""
    shape = args[0].shape.optional()
    if not shape.kind.numeric:
        return shape
    return Shape(Kind.DOUBLE, True, as_kind(shape.domain, Kind.DOUBLE))


def truth_shape(_: Arguments, __: int | None) -> Shape:
    """A truth value."""
    return Shape(Kind.BOOLEAN)


def double_shape(_: Arguments, __: int | None) -> Shape:
    """A double of which nothing more is known."""
    return Shape(Kind.DOUBLE)


def spread_shape(args: Arguments, _: int | None) -> Shape:
    """A variance or standard deviation: at most the larger of the range and the squared range."""
    low, high = numbers(args[0].shape.domain)
    if low is None or high is None:
        return Shape(Kind.DOUBLE)
    return Shape(Kind.DOUBLE, True, interval(Fraction(0), max((high - low) ** 2, high - low)))


def bounded_numbers(ends: tuple[Fraction | None, Fraction | None], kind: Kind) -> Domain:
    """The domain of numbers of a kind between two ends; any number if an end is not known."""
    low, high = ends
    if low is None or high is None:
        return ANYTHING
    if kind is Kind.INTEGER:
        return interval(int(low), int(high), integral=True)
    return as_kind(interval(low, high), kind)
