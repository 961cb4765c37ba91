"""Functions that choose between values, and casts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

from dpsql.catalog.ends import ends_as
from dpsql.catalog.function import (
    Function,
    FunctionNode,
    FunctionRecord,
    Mismatch,
    common_kind,
    expect,
    name_of_type,
)
from dpsql.catalog.record import EVERY_DIALECT
from dpsql.ir.domain import ANYTHING, Domain, hull_of, interval
from dpsql.ir.expressions import Expression, Shape
from dpsql.ir.lengths import VALUE, Length, as_all, as_any, as_first, together
from dpsql.policy.types import Kind, Scalar


def optional_as(argument: Expression, kind: Kind) -> bool:
    """Whether the argument, coerced to ``kind``, may be NULL.

    The dates of engines have a wider range than their timestamps. A bounded date is within both.
    """
    shape = argument.shape
    far = shape.kind is Kind.DATE and kind is Kind.TIMESTAMP and not shape.domain.bounded
    return shape.nullable or far


def join_domains(parts: Sequence[Expression], kind: Kind) -> Domain:
    """The domain of a value that is one of the parts (NULL parts add nothing)."""
    domains = [p.shape.domain for p in parts if p.shape.kind is not Kind.NULL]
    if not domains:
        return ANYTHING
    return as_kind(hull_of(domains), kind)


def as_kind(domain: Domain, kind: Kind) -> Domain:
    """The domain converted to a wider kind: whole numbers to doubles, dates to midnights."""
    if kind is Kind.TIMESTAMP:
        return replace(domain, low=_midnight(domain.low), high=_midnight(domain.high), members=None)
    if kind is not Kind.DOUBLE or domain.members is None:
        return domain
    return interval(domain.low, domain.high, integral=domain.integral)


def _midnight(value: Scalar | None) -> Scalar | None:
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 (naive by design)
    return value


def _day(value: Scalar | None) -> Scalar | None:
    return value.date() if isinstance(value, datetime) else value


def _coalesce_shape(args: tuple[Expression, ...], _: str) -> Shape:
    kind = common_kind(args, "COALESCE")
    reached: list[Expression] = []
    for a in args:
        reached.append(a)
        if not optional_as(a, kind):
            break
    nullable = optional_as(reached[-1], kind)
    return Shape(kind, nullable, join_domains(reached, kind), name_of_type(kind, args))


def _array_shape(args: tuple[Expression, ...], _: str) -> Shape:
    kind = common_kind(args, "ARRAY")
    if kind is Kind.NULL or kind.element is not None:
        raise Mismatch(f"ARRAY does not take {kind.value}")
    return Shape(kind.several, nullable=False)


def _items(lengths: Sequence[Length], _: tuple[Expression, ...], __: str) -> Length:
    return together(n + VALUE for n in lengths)


def _nullif_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 2, "NULLIF")
    common_kind(args, "NULLIF")
    first = args[0].shape
    return Shape(first.kind, True, first.domain, name_of_type(first.kind, args[:1]))


def _extreme_shape(args: tuple[Expression, ...], name: str) -> Shape:
    """The shape of LEAST or GREATEST under PostgreSQL's rule: NULL arguments are ignored.

    So any argument may be the result. All arguments together bound the result on one side. On the
    other side each argument that cannot be NULL bounds it: for LEAST, from above.
    """
    kind = common_kind(args, name)
    nullable = all(optional_as(a, kind) for a in args)
    if not kind.numeric:
        return Shape(kind, nullable, ANYTHING, name_of_type(kind, args))
    every = [ends_as(a, kind) for a in args if a.shape.kind is not Kind.NULL]
    sure = [ends_as(a, kind) for a in args if not a.shape.nullable]
    lows, highs = [e[0] for e in every], [e[1] for e in every]
    low = min(v for v in lows if v is not None) if None not in lows else None
    high = max(v for v in highs if v is not None) if None not in highs else None
    if name == "LEAST":
        high = min((e[1] for e in sure if e[1] is not None), default=high)
    else:
        low = max((e[0] for e in sure if e[0] is not None), default=low)
    return Shape(kind, nullable, _ends(low, high, kind))


def _ends(low: Fraction | None, high: Fraction | None, kind: Kind) -> Domain:
    if kind is Kind.INTEGER:
        return interval(
            None if low is None else math.floor(low),
            None if high is None else math.ceil(high),
            integral=True,
        )
    return interval(low, high)


def _extreme(name: str) -> Function:
    return Function(
        name.lower(),
        lambda args, _: _extreme_shape(args, name),
        f"`{name}(a, b)`: NULLs are passed over",
        as_any,
    )


_CASTS: dict[Kind, tuple[Kind, ...]] = {
    Kind.BOOLEAN: (Kind.BOOLEAN, Kind.INTEGER, Kind.TEXT),
    Kind.INTEGER: (Kind.BOOLEAN, Kind.INTEGER, Kind.DOUBLE, Kind.TEXT),
    Kind.DOUBLE: (Kind.BOOLEAN, Kind.INTEGER, Kind.DOUBLE, Kind.TEXT),
    Kind.TEXT: (Kind.BOOLEAN, Kind.INTEGER, Kind.DOUBLE, Kind.TEXT, Kind.DATE, Kind.TIMESTAMP),
    Kind.DATE: (Kind.TEXT, Kind.DATE, Kind.TIMESTAMP),
    Kind.TIMESTAMP: (Kind.TEXT, Kind.DATE, Kind.TIMESTAMP),
}


def _cast_shape(args: tuple[Expression, ...], option: str) -> Shape:
    expect(args, 1, "CAST")
    target, source = Kind(option), args[0].shape
    if source.kind is Kind.NULL:
        return Shape(target, True)
    if source.kind not in _CASTS.get(target, ()):
        raise Mismatch(f"CAST from {source.kind.value} to {target.value} is not answered")
    sure = source.kind is target or target is Kind.TEXT or _fits(args[0], target)
    return Shape(target, source.nullable or not sure, _cast_domain(args[0], target))


def _fits(argument: Expression, target: Kind) -> bool:
    """Whether the cast of every value of another kind to ``target`` succeeds."""
    source = argument.shape.kind
    if target is Kind.INTEGER and source is Kind.DOUBLE:
        return all(end is not None and abs(end) < 2**62 for end in ends_as(argument, source))
    if target is Kind.TIMESTAMP:
        return source is Kind.DATE and not optional_as(argument, target)
    return (source, target) in _SURE


_SURE = {
    (Kind.INTEGER, Kind.DOUBLE),
    (Kind.INTEGER, Kind.BOOLEAN),
    (Kind.DOUBLE, Kind.BOOLEAN),
    (Kind.BOOLEAN, Kind.INTEGER),
    (Kind.BOOLEAN, Kind.DOUBLE),
    (Kind.TIMESTAMP, Kind.DATE),
}


def _cast_domain(argument: Expression, target: Kind) -> Domain:
    source = argument.shape
    if source.kind is target:
        return source.domain
    if source.kind is Kind.BOOLEAN and target.numeric:
        return interval(0, 1, integral=True)
    if source.kind is Kind.DOUBLE and target is Kind.INTEGER:
        # DuckDB and PostgreSQL round halves to the even neighbour, other engines away from zero.
        low, high = ends_as(argument, Kind.DOUBLE)
        half = Fraction(1, 2)
        return interval(
            None if low is None else math.ceil(low - half),
            None if high is None else math.floor(high + half),
            integral=True,
        )
    if source.kind is Kind.INTEGER and target is Kind.DOUBLE:
        return interval(*ends_as(argument, target), integral=True)
    if source.kind is Kind.DATE and target is Kind.TIMESTAMP:
        return as_kind(source.domain, target)
    if source.kind is Kind.TIMESTAMP and target is Kind.DATE:
        grain = (
            source.domain.grain
            if source.domain.grain in ("week", "month", "quarter", "year")
            else None
        )
        return Domain(_day(source.domain.low), _day(source.domain.high), grain=grain)
    return ANYTHING


RECORDS = (
    FunctionRecord(
        function=Function("coalesce", _coalesce_shape, "`COALESCE(a, b)`", as_any),
        nodes=(
            FunctionNode(
                "Coalesce", ("this", "expressions"), ("this", "expressions"), EVERY_DIALECT
            ),
        ),
        strict=False,
        examples=("COALESCE(x, 0)",),
    ),
    FunctionRecord(
        function=Function("nullif", _nullif_shape, "`NULLIF(a, b)`", as_first),
        nodes=(
            FunctionNode("Nullif", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),
        ),
        strict=False,
        examples=("NULLIF(n, 1)",),
    ),
    FunctionRecord(
        function=Function("array", _array_shape, "`ARRAY[a, b]` of several quantiles", _items),
        nodes=(),
        strict=False,
        examples=(),
    ),
    FunctionRecord(
        function=_extreme("LEAST"),
        nodes=(
            FunctionNode(
                "Least",
                ("this", "expressions", "ignore_nulls"),
                ("this", "expressions"),
                ("duckdb",),
            ),
        ),
        strict=False,
        examples=("LEAST(x, 1)",),
    ),
    FunctionRecord(
        function=_extreme("GREATEST"),
        nodes=(
            FunctionNode(
                "Greatest",
                ("this", "expressions", "ignore_nulls"),
                ("this", "expressions"),
                ("duckdb",),
            ),
        ),
        strict=False,
        examples=("GREATEST(x, 1)",),
    ),
    FunctionRecord(
        function=Function(
            "cast", _cast_shape, "`CAST(a AS type)`, `a::type`: NULL when it fails", as_all
        ),
        nodes=(
            FunctionNode("Cast", ("this", "to"), None, ()),
            FunctionNode("TryCast", ("this", "to", "requires_string", "safe"), None, ()),
        ),
        strict=True,
        examples=("CAST(n AS DOUBLE PRECISION)",),
    ),
)

__all__ = [
    "RECORDS",
    "Mismatch",
    "as_kind",
    "join_domains",
    "optional_as",
]
