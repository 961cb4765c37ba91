"""Narrowing of columns: the conditions of WHERE and CASE restrict the domains of columns.

Privacy does not depend on it: the engine clamps again. Narrowing only lowers the price of a query,
or the number of groups that are enumerated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from functools import reduce

from dpsql.catalog.functions import FUNCTIONS
from dpsql.ir import domain as d
from dpsql.ir.expressions import Call, Column, Expression, Literal, Shape, conjuncts
from dpsql.policy.types import Kind, Scalar

_FLIP = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


def narrow(fields: tuple[Column, ...], condition: Expression) -> tuple[Column, ...]:
    """The fields, narrowed to rows where the condition is true.

    In such rows a compared column is also not NULL.
    """
    for part in conjuncts(condition):
        fields = _apply(fields, part)
    return fields


def narrow_else(fields: tuple[Column, ...], condition: Expression) -> tuple[Column, ...]:
    """The fields, narrowed to rows where the condition is not true (it is false, or unknown)."""
    if not isinstance(condition, Call) or condition.function not in _NEGATED:
        return fields
    if condition.shape.nullable or any(a.shape.nullable for a in condition.args):
        return fields
    return _apply(fields, replace(condition, function=_NEGATED[condition.function]))


def conjunction(parts: list[Expression]) -> Expression:
    """The condition that all parts hold."""
    return reduce(_both, parts)


def _both(a: Expression, b: Expression) -> Expression:
    span = a.span.cover(b.span) if a.span and b.span else a.span
    return Call("and", (a, b), FUNCTIONS["and"].shape((a, b), ""), span=span)


def _apply(fields: tuple[Column, ...], part: Expression) -> tuple[Column, ...]:
    if not isinstance(part, Call):
        return fields
    if part.function in _FLIP:
        return _compare(fields, part.function, *part.args)
    if part.function == "in":
        return _member(fields, part)
    if part.function == "not":
        return _not(fields, part.args[0])
    if part.function == "or":
        return _either(fields, part)
    return fields


def _compare(
    fields: tuple[Column, ...], sign: str, left: Expression, right: Expression
) -> tuple[Column, ...]:
    if isinstance(right, Column) and isinstance(left, Literal):
        left, right, sign = right, left, _FLIP[sign]
    if not isinstance(left, Column):
        return fields
    if not isinstance(right, Literal):
        fields = _update(fields, left, lambda shape: shape)
        return _update(fields, right, lambda s: s) if isinstance(right, Column) else fields
    value = right.value
    if value is None:
        return fields
    return _update(fields, left, lambda shape: _bounded(shape, sign, value))


def _bounded(shape: Shape, sign: str, value: Scalar) -> Shape:
    """The shape of a column in rows where its comparison with a constant is true."""
    before = shape.domain
    if sign == "ne":
        after = d.without(before, value)
    elif sign == "eq":
        after = _equal(shape, value)
    elif isinstance(value, str | bool):
        after = before
    elif sign in ("lt", "le"):
        after = d.at_most(before, _bound(shape, value, -1, strict=sign == "lt"))
    else:
        after = d.at_least(before, _bound(shape, value, 1, strict=sign == "gt"))
    return replace(shape, domain=after)


_EXACT = 2**53
"""All whole numbers up to here are doubles, so a comparison as doubles is exact."""


def _bound(shape: Shape, value: Scalar, side: int, *, strict: bool) -> Scalar:
    """The end of the values that a column compared with a constant can have.

    ``side`` is 1 if the column is above the constant and -1 if it is below. If the values are
    discrete, the end is the first value on that side.
    """
    match value:
        case datetime() if shape.kind is Kind.DATE:
            inside = strict and value == datetime.combine(value, time())
            late = side == 1 and value != datetime.combine(value, time())
            return _later(value.date(), timedelta(days=side if inside or late else 0))
        case datetime():
            return _later(value, timedelta(microseconds=side if strict else 0))
        case date() if shape.kind is Kind.TIMESTAMP:
            return _bound(shape, datetime.combine(value, time()), side, strict=strict)
        case date():
            return _later(value, timedelta(days=side if strict else 0))
        case _:
            assert isinstance(value, int | Fraction)
            return _number_bound(shape, value, side, strict=strict)


def _number_bound(shape: Shape, value: int | Fraction, side: int, *, strict: bool) -> Scalar:
    if isinstance(value, int) and shape.kind is Kind.INTEGER:
        return value + side if strict else value
    near = d.nearest((Fraction(value), None))[0]
    if near is None:
        return value
    if shape.kind is Kind.INTEGER and abs(near) >= _EXACT:
        return int(near) - side * (
            abs(int(near)) // _EXACT + 1
        )  # several whole numbers round to this double
    if not shape.domain.integral or abs(near) >= _EXACT:
        return near if isinstance(value, Fraction) else value
    whole = math.floor(near) if side < 0 else math.ceil(near)
    return whole + side if strict and whole == near else whole


def _later(value: date, step: timedelta) -> Scalar:
    try:
        return value + step
    except OverflowError:
        return value


def _equal(shape: Shape, value: Scalar) -> d.Domain:
    """The domain of a column that equals a constant, in the column's own type."""
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return _equal_number(shape, value)
    if isinstance(value, datetime) and shape.kind is Kind.DATE:
        midnight = value == datetime.combine(value, time())
        return d.among(shape.domain, [value.date()] if midnight else [])
    if isinstance(value, date) and not isinstance(value, datetime) and shape.kind is Kind.TIMESTAMP:
        value = datetime.combine(value, time())
    return d.among(shape.domain, [value])


def _equal_number(shape: Shape, value: int | Fraction) -> d.Domain:
    if isinstance(value, int) and (shape.kind is Kind.INTEGER or abs(value) < _EXACT):
        return d.among(shape.domain, [value])
    near = d.nearest((Fraction(value), None))[0]
    if near is None:
        return shape.domain
    if shape.kind is not Kind.INTEGER:
        return d.among(shape.domain, [near if isinstance(value, int) else value])
    if abs(near) >= _EXACT:
        return shape.domain
    return d.among(shape.domain, [int(near)] if near.denominator == 1 else [])


def _member(fields: tuple[Column, ...], part: Call) -> tuple[Column, ...]:
    column, *options = part.args
    if not isinstance(column, Column) or not all(isinstance(o, Literal) for o in options):
        return fields
    values = [o.value for o in options if isinstance(o, Literal) and o.value is not None]

    def one_of(shape: Shape) -> Shape:
        found = [_equal(shape, v) for v in values]
        return replace(shape, domain=d.hull_of([d.members([]), *found]))

    return _update(fields, column, one_of)


def _not(fields: tuple[Column, ...], inner: Expression) -> tuple[Column, ...]:
    if not isinstance(inner, Call):
        return fields
    if inner.function == "is_null" and isinstance(inner.args[0], Column):
        return _update(fields, inner.args[0], lambda shape: shape)
    if inner.function == "in" and isinstance(inner.args[0], Column):
        for option in inner.args[1:]:
            fields = _compare(fields, "ne", inner.args[0], option)
        return fields
    if inner.function in _NEGATED:
        return _compare(fields, _NEGATED[inner.function], *inner.args)
    return fields


def _either(fields: tuple[Column, ...], part: Call) -> tuple[Column, ...]:
    """The fields, narrowed by an OR: each domain is the hull of its domains in the branches."""
    branches = [narrow(fields, arg) for arg in part.args]
    merged = []
    for position, before in enumerate(fields):
        options = [branch[position].shape for branch in branches]
        domain = options[0].domain
        for option in options[1:]:
            domain = d.hull(domain, option.domain)
        nullable = any(o.nullable for o in options)
        merged.append(
            replace(before, shape=replace(before.shape, domain=domain, nullable=nullable))
        )
    return tuple(merged)


def _update(
    fields: tuple[Column, ...], column: Column, change: Callable[[Shape], Shape]
) -> tuple[Column, ...]:
    return tuple(
        replace(f, shape=replace(change(f.shape), nullable=False))
        if f.number == column.number
        else f
        for f in fields
    )
