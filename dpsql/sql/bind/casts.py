"""CAST to a type, and to the size in the type's name."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from dpsql.catalog.decimals import is_decimal
from dpsql.diagnostics.quote import quote
from dpsql.diagnostics.refusal import Refused
from dpsql.ir.domain import at_least, at_most, numbers
from dpsql.ir.expressions import (
    NULL,
    Call,
    Case,
    Column,
    Expression,
    Interval,
    Literal,
    Parameter,
    walk,
)
from dpsql.ir.zones import zone_named
from dpsql.policy.types import INSTANT, MOST_DIGITS, WIDE, Kind, type_name
from dpsql.sql.bind import literals
from dpsql.sql.bind.binder import Binder
from dpsql.sql.bind.context import refuse
from dpsql.sql.bind.copies import check_copy
from dpsql.sql.bind.operators import check_written, is_text_constant
from dpsql.sql.marks import ROUNDS_AWAY, has

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
    exp.DType.UUID: Kind.TEXT,
    exp.DType.DATE: Kind.DATE,
    exp.DType.TIMESTAMP: Kind.TIMESTAMP,
    exp.DType.INTERVAL: Kind.INTERVAL,
    exp.DType.TIMESTAMPTZ: Kind.TIMESTAMP,
}
_BITS = {exp.DType.SMALLINT: 16, exp.DType.INT: 32}
_LARGEST = {exp.DType.VARCHAR: (1_000,), exp.DType.DECIMAL: (1_000, MOST_DIGITS)}
"""The largest sizes that are answered, for types with sizes: ``varchar(n)``, ``numeric(p, s)``."""


def bind_cast(self: Binder, node: exp.Expr) -> Expression:
    """The value as another type. A value that does not fit is NULL; ``varchar(n)`` truncates."""
    target = node.args["to"]
    kind = _TYPES.get(target.this)
    sizes = _sizes(target)
    if kind is None or sizes is None:
        raise _refused(node, target)
    value = self.bind(node.this)
    if target.this in _OF_CONSTANTS:
        return _OF_CONSTANTS[target.this](value, node, target)
    if kind is Kind.TEXT:
        check_written(value, node)
    away = has(node, ROUNDS_AWAY) or (is_decimal(value) and not _is_parameter(node.this))
    if kind is Kind.INTEGER and value.shape.kind is Kind.DOUBLE and away:
        value = self.call("round", (value,), node)
    instant = target.this is exp.DType.TIMESTAMPTZ
    if is_text_constant(value) and kind is not Kind.TEXT:
        value = literals.fit(value, kind, node, instant=instant)
    else:
        value = self.call("cast", (value,), node, kind.value)
    if instant:
        return replace(value, shape=replace(value.shape, type_name=INSTANT))
    if target.this in _BITS:
        return _within(self, node, value, 1 << (_BITS[target.this] - 1))
    if not sizes:
        return _of_type(value, WIDE) if target.this is exp.DType.DECIMAL else value
    if kind is Kind.TEXT:
        return self.call("left", (value, literals.literal(sizes[0], node)), node)
    return _decimal(self, node, value, *sizes)


def _as_uuid(value: Expression, node: exp.Expr, target: exp.Expr) -> Expression:
    """A constant as a uuid, or a value of this type.

    Any other text is refused: whether it is a uuid depends on rows.
    """
    if is_text_constant(value):
        return literals.fit_uuid(value, node)
    if value.shape.type_name != "uuid":
        raise _refused(node, target)
    return value


def _interval(value: Expression, node: exp.Expr, _: exp.Expr) -> Expression:
    """``'1 day'::interval``, for constants only."""
    if isinstance(value, Interval):
        return value
    text = value.value if isinstance(value, Literal) else None
    return literals.interval_of(text if isinstance(text, str) else "", node)


_OF_CONSTANTS = {exp.DType.UUID: _as_uuid, exp.DType.INTERVAL: _interval}


def _is_parameter(node: exp.Expr) -> bool:
    """Whether a value is still a parameter: a number is so only if it was sent as a float.

    All other numbers have been written into the statement as constants.
    """
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return isinstance(node, exp.Parameter | exp.Placeholder)


def bind_at_time_zone(self: Binder, node: exp.Expr) -> Expression:
    """``a AT TIME ZONE 'Europe/Berlin'``: an instant to local time, or local time to an instant."""
    named = node.args["zone"]
    literal = isinstance(named, exp.Literal) and named.is_string
    zone = zone_named(str(named.this)) if literal else None
    if zone is None:
        raise refuse(
            "DP201",
            node,
            "AT TIME ZONE takes the literal name of a zone with its region",
            "Short names and offsets mean different things to different systems.",
            f"{quote(node.this.sql('postgres', comments=False))} AT TIME ZONE 'Europe/Berlin', or 'UTC'",
        )
    value = self.bind(node.this)
    written = isinstance(node.this.unnest(), exp.Cast)  # its type is explicit
    if value.shape.kind is not Kind.TIMESTAMP or not (written or _is_clear(value)):
        raise refuse(
            "DP201",
            node,
            "AT TIME ZONE is not answered for a value of type "
            f"{value.shape.type_name or value.shape.kind.value}",
            "It does opposite things to a timestamp and to a timestamptz, so the value must "
            "plainly be one of the two.",
            f"Cast it: CAST({quote(node.this.sql('postgres', comments=False))} AS timestamptz) AT TIME ZONE '{zone}'.",
        )
    instant = value.shape.type_name == INSTANT
    return self.call("to_zone" if instant else "from_zone", (value,), node, zone)


def _is_clear(value: Expression) -> bool:
    """Whether it is certain that a time is an instant, or that it is none.

    It is certainly none if it has no constant or parameter of a time, and no part is an instant.
    """
    if value.shape.type_name == INSTANT or (
        isinstance(value, Call) and value.function == "to_zone"
    ):
        return True
    parts = list(walk(value))
    given = any(
        isinstance(p, Literal | Parameter) and p.shape.kind is Kind.TIMESTAMP for p in parts
    )
    return not given and all(p.shape.type_name != INSTANT for p in parts)


def _sizes(target: exp.Expr) -> tuple[int, ...] | None:
    """The sizes after a type's name; None if they are not answered."""
    texts = [str(size.name) for size in target.expressions]
    largest = _LARGEST.get(target.this, ())
    if len(texts) > len(largest) or not all(t.isdigit() and len(t) < 5 for t in texts):
        return None
    sizes = tuple(int(t) for t in texts)
    return sizes if all(s <= most for s, most in zip(sizes, largest, strict=False)) else None


def _decimal(
    self: Binder, node: exp.Expr, value: Expression, precision: int, scale: int = 0
) -> Expression:
    """The value rounded to ``scale`` digits; NULL if its whole part has too many digits."""
    rounded = self.call("round", (check_copy(value, node), literals.literal(scale, node)), node)
    limit = literals.literal(Fraction(10) ** (precision - scale), node)
    fits = self.call("lt", (self.call("abs", (rounded,), node), limit), node)
    name = type_name(f"decimal({precision}, {scale})")
    case = Case(((fits, rounded),), NULL, rounded.shape.optional(), rounded.span)
    return _of_type(case, name)


def _of_type(value: Expression, name: str) -> Expression:
    """The value with this type name. Constants and parameters stay unchanged.

    The digits of a constant are those of its value, and a parameter has none.
    """
    if not isinstance(value, Call | Case | Column):
        return value
    return replace(value, shape=replace(value.shape, type_name=name))


def _within(self: Binder, node: exp.Expr, value: Expression, limit: int) -> Expression:
    """The value, or NULL if the type does not hold it. A value that surely fits is unchanged."""
    shape = value.shape
    low, high = numbers(shape.domain)
    ends = (("ge", low, -limit), ("le", high, limit - 1))
    beyond = [
        self.call(name, (check_copy(value, node), literals.literal(end, node)), node)
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
        "A cast is answered only if it cannot fail on any row.",
        "Cast to boolean, integer, bigint, double precision, numeric(p, s), text, varchar(n), "
        "date, timestamp or timestamptz; literals to uuid too.",
    )
