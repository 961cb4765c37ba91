"""Constants of SQL text, and values of parameters, as exact, typed literals."""

from __future__ import annotations

import datetime as dt
import math
import operator
import re
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from uuid import UUID

from sqlglot import exp

from dpsql.catalog.functions.time import UNITS
from dpsql.diagnostics.refusal import Refused
from dpsql.ir.domain import members
from dpsql.ir.expressions import NULL, Expression, Interval, Literal, Shape
from dpsql.policy.types import INSTANT, Kind, Scalar
from dpsql.sql.bind.context import Context, refuse
from dpsql.sql.intervals import read_interval
from dpsql.sql.parameters import STRANGE, builtin
from dpsql.sql.spans import span_of

_KINDS: tuple[tuple[type, Kind], ...] = (
    (bool, Kind.BOOLEAN),
    (int, Kind.INTEGER),
    (Fraction, Kind.DOUBLE),
    (str, Kind.TEXT),
    (dt.datetime, Kind.TIMESTAMP),
    (dt.date, Kind.DATE),
)


def literal(value: Scalar | None, node: exp.Expr | None = None) -> Literal:
    """The typed constant of a value."""
    span = None if node is None else span_of(node)
    if value is None:
        return Literal(None, NULL.shape, span)
    kind = next(kind for python, kind in _KINDS if isinstance(value, python))
    return Literal(value, Shape(kind, nullable=False, domain=members([value])), span)


def number(node: exp.Literal) -> Literal:
    """A numeric constant, exactly as written."""
    text = str(node.this)
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise _bad(node, text[:40], "a number") from None
    if not value.is_finite() or abs(value.adjusted()) > 300:
        raise _bad(node, "this number", "between 1e-300 and 1e300")
    if value == value.to_integral_value() and re.fullmatch(r"-?\d+", text):
        if abs(value) >= 2**63:
            raise _bad(node, "this number", "a whole number of 64 bits")
        return literal(int(value), node)
    return literal(Fraction(value), node)


def parameter(node: exp.Expr, context: Context) -> Literal:
    """The value given for ``?`` or ``$1``."""
    name = node.this
    if not (isinstance(name, exp.Literal) and str(name.this).isdecimal()):
        raise refuse(
            "DP113",
            node,
            "this parameter has no number",
            "Of parameters, only ? and $1 are read.",
            "Write $1, $2.",
        )
    position = int(str(name.this)) - 1
    if not 0 <= position < len(context.parameters):
        raise refuse(
            "DP113",
            node,
            f"no value was given for parameter {position + 1}",
            f"The number of values that came with the statement is {len(context.parameters)}.",
            "Give one value for each parameter.",
        )
    given = builtin(context.parameters[position])
    found = literal(scalar(given, node), node)
    if isinstance(given, dt.datetime) and given.tzinfo is not None:
        return replace(found, shape=replace(found.shape, type_name=INSTANT))
    return found


def scalar(given: object, node: exp.Expr) -> Scalar | None:
    """A driver's value as an exact value, read without calling methods of its class."""
    match value := builtin(given):
        case float() | Decimal():
            if not math.isfinite(value):
                raise _bad(node, "a parameter", "a finite number")
            return Fraction(value)
        case dt.datetime():
            return value.replace(tzinfo=None)  # a value with a zone is in UTC here
        case str() if STRANGE.search(value):
            raise _bad(node, "a parameter", "text without NUL bytes and halves of characters")
        case None | bool() | int() | Fraction() | str() | dt.date():
            return value
        case _:
            raise _bad(node, "a parameter", "a number, text, a date or NULL")


def of_kind(value: Scalar | None, kind: Kind) -> Scalar | None:
    """A constant as a value of a column's kind, so that values equal in the column are equal here.

    >>> of_kind(dt.date(2025, 8, 31), Kind.TIMESTAMP), of_kind(7, Kind.DOUBLE)
    (datetime.datetime(2025, 8, 31, 0, 0), Fraction(7, 1))
    """
    if kind is Kind.TIMESTAMP and isinstance(value, dt.date):
        return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
    return Fraction(value) if kind is Kind.DOUBLE and isinstance(value, int) else value


def interval(node: exp.Interval) -> Interval:
    """``INTERVAL '3 months'``: a literal whole number of one unit."""
    count, unit = node.this, node.args.get("unit")
    word = str(unit.this).lower().rstrip("s") if isinstance(unit, exp.Var) else ""
    negative = isinstance(count, exp.Neg)
    inner = count.this if isinstance(count, exp.Neg) else count
    text = str(inner.this) if isinstance(inner, exp.Literal) else ""
    if word not in UNITS or not re.fullmatch(r"[+-]?\d{1,6}", text):
        raise _no_interval(node)
    return Interval(-int(text) if negative else int(text), word, span=span_of(node))


def interval_of(text: str, node: exp.Expr) -> Interval:
    """The interval that a text writes, as a whole number of one unit."""
    found = read_interval(text)
    if found is None:
        raise _no_interval(node)
    return Interval(*found, span=span_of(node))


def _no_interval(node: exp.Expr) -> Refused:
    return refuse(
        "DP205",
        node,
        "an interval takes a literal whole number of one unit",
        f"Its length must be known before data is read. Units: {', '.join(UNITS)}.",
        "INTERVAL '3 months'",
    )


_EXACT = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}


def fold_constants(
    name: str, args: tuple[Expression, ...], node: exp.Expr
) -> Literal | Interval | None:
    """The result of an operation on constants; None for other operations and types.

    Decimals are computed exactly, as in PostgreSQL, and intervals are multiplied.
    """
    if name not in _EXACT:
        return None
    a, b = args
    if name == "multiply" and isinstance(b, Interval):
        a, b = b, a
    if isinstance(a, Interval) and isinstance(b, Literal) and isinstance(b.value, int):
        if name == "multiply" and not isinstance(b.value, bool):
            return Interval(a.count * b.value, a.unit, span=span_of(node))
        return None
    if Kind.DOUBLE not in (a.shape.kind, b.shape.kind):
        return None
    one, other = _exact(a), _exact(b)
    return None if one is None or other is None else literal(_EXACT[name](one, other), node)


def _exact(argument: Expression) -> Fraction | None:
    """The exact value of a numeric constant; None if it is not one, or has too many digits."""
    value = argument.value if isinstance(argument, Literal) else None
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        return None
    exact = Fraction(value)
    return exact if abs(exact) < 10**18 and exact.denominator <= 10**18 else None


def fit(value: Expression, kind: Kind, node: exp.Expr, *, instant: bool = False) -> Expression:
    """A text constant read as a value of ``kind``; anything else unchanged."""
    if not isinstance(value, Literal) or not isinstance(value.value, str) or kind is Kind.TEXT:
        return value
    return literal(read_constant(value.value, kind, node, instant=instant), node)


def fit_uuid(value: Expression, node: exp.Expr) -> Expression:
    """A text constant as the canonical text of its uuid; anything else unchanged."""
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        return value
    try:
        found = str(UUID(value.value))
    except ValueError:
        raise _bad(node, f"'{value.value[:40]}'", "a uuid") from None
    made = literal(found, node)
    return replace(made, shape=replace(made.shape, type_name="uuid"))


def read_constant(text: str, kind: Kind, node: exp.Expr, *, instant: bool = False) -> Scalar:
    """Text read as a constant of a kind, or refused; an ``instant`` may have an offset from UTC."""
    try:
        match kind:
            case Kind.DATE:
                return dt.date.fromisoformat(text.strip())
            case Kind.TIMESTAMP:
                at = dt.datetime.fromisoformat(text.strip())
                if instant and at.tzinfo is not None:
                    at = at.astimezone(dt.UTC)
                if at.utcoffset() in (None, dt.timedelta()):
                    return at.replace(tzinfo=None)
            case Kind.INTEGER:
                return int(text)
            case Kind.DOUBLE:
                return Fraction(Decimal(text))
            case Kind.BOOLEAN:
                return {"true": True, "t": True, "false": False, "f": False}[text.lower()]
            case _:
                pass
    except (ValueError, KeyError, InvalidOperation, OverflowError):
        pass
    raise _bad(node, f"'{text[:40]}'", f"a {kind.value}")


_HINTS = {
    "date": "Dates are written '2025-08-31'.",
    "timestamp": "Timestamps are written '2025-08-31 14:00:00'.",
    "boolean": "Write TRUE or FALSE.",
    "uuid": "Write a uuid as '123e4567-e89b-12d3-a456-426614174000'.",
    "number": "Numbers are written 12 or 12.5, without quotes.",
}


def _bad(node: exp.Expr, what: str, wanted: str) -> Refused:
    return refuse(
        "DP205",
        node,
        f"{what} is not {wanted}",
        "Constants are read before any data, so a constant must be a valid value of its type.",
        _HINTS[next((word for word in _HINTS if word in wanted), "number")],
    )
