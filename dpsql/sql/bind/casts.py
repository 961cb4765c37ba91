"""CAST: to a kind, and to the size that a type names."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.diagnostics.refusal import Refused
from dpsql.policy.types import Kind
from dpsql.sql.bind import literals
from dpsql.sql.bind.context import refuse
from dpsql.sql.bind.copies import copied
from dpsql.sql.bind.operators import check_written, is_text_constant
from dpsql.sql.domain import at_least, at_most, numbers
from dpsql.sql.expressions import NULL, Case, Expression
from dpsql.sql.marks import ROUNDS_AWAY, has

if TYPE_CHECKING:
    from dpsql.sql.bind.scalars import Scalars

_TYPES: dict[exp.DType, Kind] = {
    exp.DType.BOOLEAN: Kind.BOOLEAN,
    exp.DType.SMALLINT: Kind.INTEGER,
    exp.DType.INT: Kind.INTEGER,
    exp.DType.BIGINT: Kind.INTEGER,
    exp.DType.FLOAT: Kind.DOUBLE,
    exp.DType.DOUBLE: Kind.DOUBLE,
    exp.DType.DECIMAL: Kind.DOUBLE,
    exp.DType.TEXT: Kind.TEXT,
    exp.DType.VARCHAR: Kind.TEXT,
    exp.DType.DATE: Kind.DATE,
    exp.DType.TIMESTAMP: Kind.TIMESTAMP,
}
_BITS = {exp.DType.SMALLINT: 16, exp.DType.INT: 32}
_LARGEST = {exp.DType.VARCHAR: (1_000,), exp.DType.DECIMAL: (1_000, 15)}
"""The sizes that types may name, and the largest answered: ``varchar(n)``, ``numeric(p, s)``."""


def bind_cast(self: Scalars, node: exp.Expr) -> Expression:
    """The value as another type; what does not fit is NULL, and ``varchar(n)`` cuts."""
    target = node.args["to"]
    kind = _TYPES.get(target.this)
    if _is_moment(node) and isinstance(_around(node), _COMPARISONS):
        kind = Kind.TIMESTAMP
    sizes = _sizes(target)
    if kind is None or sizes is None:
        raise _refused(node, target)
    value = self.bind(node.this)
    if kind is Kind.TEXT:
        check_written(value, node)
    away = has(node, ROUNDS_AWAY) or isinstance(_number(node.this), exp.Literal)
    if kind is Kind.INTEGER and value.shape.kind is Kind.DOUBLE and away:
        value = self.call("round", (value,), node)
    if is_text_constant(value) and kind is not Kind.TEXT:
        value = literals.fit(value, kind, node)
    else:
        value = self.call("cast", (value,), node, kind.value)
    if target.this in _BITS:
        return _within(self, node, value, 1 << (_BITS[target.this] - 1))
    if not sizes:
        return value
    if kind is Kind.TEXT:
        return self.call("left", (value, literals.literal(sizes[0], node)), node)
    return _decimal(self, node, value, *sizes)


def _number(node: exp.Expr) -> exp.Expr:
    """What a sign or brackets are around: a constant with a point is a decimal, and no double."""
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return node


def bind_at_time_zone(self: Scalars, node: exp.Expr) -> Expression:
    """``x::timestamptz AT TIME ZONE 'UTC'``: the same timestamp, for every session is in UTC."""
    inner, zone = node.this.unnest(), node.args["zone"]
    named = str(zone.this).lower() if isinstance(zone, exp.Literal) and zone.is_string else ""
    if not _is_moment(inner) or named not in _UTC:
        raise refuse(
            "DP201",
            node,
            "AT TIME ZONE is answered of x::timestamptz and 'UTC' only",
            "Timestamps have no zone here, and every session is in UTC.",
            "Shift timestamps with INTERVAL '2 hours'.",
        )
    plain = type(inner)(this=inner.this, to=exp.DataType(this=exp.DType.TIMESTAMP))
    plain.meta.update(inner.meta)
    return bind_cast(self, plain)


_UTC = frozenset({"utc", "etc/utc", "gmt", "z", "zulu"})
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
"""Where a timestamp with a zone is used up, and none is shown: UTC adds nothing to it."""


def _is_moment(node: exp.Expr) -> bool:
    cast = isinstance(node, exp.Cast | exp.TryCast)
    return cast and node.args["to"].this is exp.DType.TIMESTAMPTZ


def _around(node: exp.Expr) -> exp.Expr | None:
    """What a value is an operand of."""
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    return around


def _sizes(target: exp.Expr) -> tuple[int, ...] | None:
    """The numbers behind a type's name; None when they are not answered."""
    texts = [str(size.name) for size in target.expressions]
    largest = _LARGEST.get(target.this, ())
    if len(texts) > len(largest) or not all(t.isdigit() and len(t) < 5 for t in texts):
        return None
    sizes = tuple(int(t) for t in texts)
    return sizes if all(s <= most for s, most in zip(sizes, largest, strict=False)) else None


def _decimal(
    self: Scalars, node: exp.Expr, value: Expression, precision: int, scale: int = 0
) -> Expression:
    """Rounded to ``scale`` digits; NULL where the whole part has more than the type holds."""
    rounded = self.call("round", (copied(value, node), literals.literal(scale, node)), node)
    limit = literals.literal(Fraction(10) ** (precision - scale), node)
    fits = self.call("lt", (self.call("abs", (rounded,), node), limit), node)
    return Case(((fits, rounded),), NULL, rounded.shape.optional(), rounded.span)


def _within(self: Scalars, node: exp.Expr, value: Expression, limit: int) -> Expression:
    """NULL where the type has no such number; a value that is known to be one stays as it is."""
    shape = value.shape
    low, high = numbers(shape.domain)
    ends = (("ge", low, -limit), ("le", high, limit - 1))
    beyond = [
        self.call(name, (copied(value, node), literals.literal(end, node)), node)
        for name, known, end in ends
        if known is None or (known < end if name == "ge" else known > end)
    ]
    if shape.kind is not Kind.INTEGER or not beyond:
        return value
    fits = beyond[0] if len(beyond) == 1 else self.call("and", tuple(beyond), node)
    kept = replace(shape, domain=at_most(at_least(shape.domain, -limit), limit - 1))
    return Case(((fits, value),), NULL, kept.optional(), value.span)


def _refused(node: exp.Expr, target: exp.Expr) -> Refused:
    return refuse(
        "DP201",
        node,
        f"CAST to {target.sql().lower()} is not answered",
        "Only types whose casts never fail are used.",
        "Cast to boolean, integer, bigint, double precision, numeric(p, s), text, varchar(n), "
        "date or timestamp.",
    )
