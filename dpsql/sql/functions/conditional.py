"""Choosing between values, and changing their type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

from dpsql.policy.types import Kind
from dpsql.sql.domain import ANYTHING, Domain, hull, interval, numbers
from dpsql.sql.expressions import Expression, Shape
from dpsql.sql.functions.function import (
    Function,
    Mismatch,
    common_kind,
    expect,
)

_ENGINE_TYPE = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.DOUBLE: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}


def engine_type(kind: Kind) -> str:
    """The engine's name for a kind."""
    return _ENGINE_TYPE[kind]


def coerced(text: str, argument: Expression, kind: Kind) -> str:
    """The text of an argument, as the kind that it shares with its neighbours."""
    if argument.shape.kind in (kind, Kind.NULL):
        return text
    return f"TRY_CAST({text} AS {engine_type(kind)})"


def joined(parts: Sequence[Expression], kind: Kind) -> Domain:
    """What is known of a value that is one of the parts (NULL parts add nothing)."""
    domains = [p.shape.domain for p in parts if p.shape.kind is not Kind.NULL]
    if not domains:
        return ANYTHING
    return as_kind(reduce(hull, domains), kind)


def as_kind(domain: Domain, kind: Kind) -> Domain:
    """The domain as one of another numeric kind."""
    if kind is not Kind.DOUBLE or domain.members is None:
        return domain
    return interval(domain.low, domain.high, integral=domain.integral)


def _coalesce_shape(args: tuple[Expression, ...], _: str) -> Shape:
    kind = common_kind(args, "COALESCE")
    reached: list[Expression] = []
    for a in args:
        reached.append(a)
        if not a.shape.nullable:
            break
    return Shape(kind, reached[-1].shape.nullable, joined(reached, kind))


def _coalesce(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    kind = common_kind(args, "COALESCE")
    return f"coalesce({', '.join(coerced(t, a, kind) for t, a in zip(texts, args, strict=True))})"


def _nullif_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 2, "NULLIF")
    common_kind(args, "NULLIF")
    return Shape(args[0].shape.kind, True, args[0].shape.domain)


def _extreme_shape(args: tuple[Expression, ...], option: str) -> Shape:
    name = "LEAST or GREATEST"
    kind = common_kind(args, name)
    # PostgreSQL's rule: NULL arguments are passed over, so any argument may be the answer.
    nullable = all(a.shape.nullable for a in args)
    ends = [a.shape.domain for a in args if a.shape.kind is not Kind.NULL]
    if not kind.numeric:
        return Shape(kind, nullable, ANYTHING)
    if any(a.shape.nullable for a in args):
        # A NULL argument yields to the others: bounded by those that cannot be NULL.
        return Shape(kind, nullable, _extreme_nullable(args, option, kind))
    return Shape(kind, nullable, _tighten([numbers(d) for d in ends], option, kind))


def _extreme_nullable(args: tuple[Expression, ...], option: str, kind: Kind) -> Domain:
    """Where some argument may be NULL: the sure ones bound one end, all of them the other."""
    sure = [numbers(a.shape.domain) for a in args if not a.shape.nullable]
    every = [numbers(a.shape.domain) for a in args if a.shape.kind is not Kind.NULL]
    lows, highs = [e[0] for e in every], [e[1] for e in every]
    low = min(v for v in lows if v is not None) if None not in lows else None
    high = max(v for v in highs if v is not None) if None not in highs else None
    if option == "least":
        caps = [e[1] for e in sure if e[1] is not None]
        high = min(caps) if caps else high
    else:
        floors = [e[0] for e in sure if e[0] is not None]
        low = max(floors) if floors else low
    return _ends(low, high, kind)


def _tighten(
    ends: list[tuple[Fraction | None, Fraction | None]], option: str, kind: Kind
) -> Domain:
    lows, highs = [e[0] for e in ends], [e[1] for e in ends]
    known_lows = [v for v in lows if v is not None]
    known_highs = [v for v in highs if v is not None]
    if option == "least":
        low = min(known_lows) if None not in lows else None
        high = min(known_highs) if known_highs else None
    else:
        low = max(known_lows) if known_lows else None
        high = max(known_highs) if None not in highs else None
    return _ends(low, high, kind)


def _ends(low: Fraction | None, high: Fraction | None, kind: Kind) -> Domain:
    if kind is Kind.INTEGER:
        return interval(
            None if low is None else math.floor(low),
            None if high is None else math.ceil(high),
            integral=True,
        )
    return interval(low, high)


def _extreme(texts: Sequence[str], args: tuple[Expression, ...], option: str) -> str:
    kind = common_kind(args, option)
    parts = ", ".join(coerced(t, a, kind) for t, a in zip(texts, args, strict=True))
    return f"{option}({parts})"


def _named_extreme(name: str) -> Function:
    return Function(
        name,
        lambda args, _: _extreme_shape(args, name),
        lambda texts, args, _: _extreme(texts, args, name),
        f"`{name.upper()}(a, b)`: NULLs are passed over",
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
    sure = source.kind is target or target is Kind.TEXT or (source.kind, target) in _SURE
    return Shape(target, source.nullable or not sure, _cast_domain(source, target))


_SURE = {
    (Kind.INTEGER, Kind.DOUBLE),
    (Kind.BOOLEAN, Kind.INTEGER),
    (Kind.BOOLEAN, Kind.DOUBLE),
    (Kind.DATE, Kind.TIMESTAMP),
    (Kind.TIMESTAMP, Kind.DATE),
}


def _cast_domain(source: Shape, target: Kind) -> Domain:
    if source.kind is target:
        return source.domain
    if source.kind is Kind.BOOLEAN and target.numeric:
        return interval(0, 1, integral=True)
    low, high = numbers(source.domain)
    if source.kind.numeric and target is Kind.INTEGER:
        # Engines round halves away from zero or to even: the hull of both.
        return interval(
            None if low is None else math.floor(low),
            None if high is None else math.ceil(high),
            integral=True,
        )
    if source.kind.numeric and target is Kind.DOUBLE:
        return interval(source.domain.low, source.domain.high, integral=True)
    if source.kind.temporal and target.temporal:
        return interval(source.domain.low, source.domain.high)
    return ANYTHING


def _cast(texts: Sequence[str], args: tuple[Expression, ...], option: str) -> str:
    target = Kind(option)
    if args[0].shape.kind is target:
        return texts[0]
    return f"TRY_CAST({texts[0]} AS {engine_type(target)})"


FAMILY = (
    Function("coalesce", _coalesce_shape, _coalesce, "`COALESCE(a, b)`"),
    Function("nullif", _nullif_shape, lambda t, _, __: f"nullif({t[0]}, {t[1]})", "`NULLIF(a, b)`"),
    _named_extreme("least"),
    _named_extreme("greatest"),
    Function("cast", _cast_shape, _cast, "`CAST(a AS type)`, `a::type`: NULL when it fails"),
)

__all__ = ["FAMILY", "Mismatch", "as_kind", "coerced", "engine_type", "joined"]
