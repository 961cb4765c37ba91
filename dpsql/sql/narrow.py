"""What a condition tells about columns: WHERE and CASE narrow domains.

Narrowing only ever prices a query better or enumerates fewer groups; the engine clamps again.
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.policy.types import Scalar
from dpsql.sql import domain as d
from dpsql.sql.expressions import Call, Column, Expression, Literal, Shape

_FLIP = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


def narrow(fields: tuple[Column, ...], condition: Expression) -> tuple[Column, ...]:
    """The fields as they are in rows where the condition is true.

    In such rows a compared column is not NULL either.
    """
    for part in conjuncts(condition):
        fields = _apply(fields, part)
    return fields


def narrow_else(fields: tuple[Column, ...], condition: Expression) -> tuple[Column, ...]:
    """The fields in rows where the condition is not true: false, or unknown for NULLs."""
    if not isinstance(condition, Call) or condition.function not in _NEGATED:
        return fields
    if any(a.shape.nullable for a in condition.args):
        return fields
    return _apply(fields, replace(condition, function=_NEGATED[condition.function]))


def conjuncts(condition: Expression) -> list[Expression]:
    """The parts of a condition that all must hold."""
    if isinstance(condition, Call) and condition.function == "and":
        return [part for arg in condition.args for part in conjuncts(arg)]
    return [condition]


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
        return _update(fields, left, lambda shape: shape)
    value = right.value
    if value is None:
        return fields
    return _update(fields, left, lambda shape: _bounded(shape, sign, value))


def _bounded(shape: Shape, sign: str, value: Scalar) -> Shape:
    before = shape.domain
    match sign:
        case "eq":
            after = d.among(before, [value])
        case "ne":
            after = d.without(before, value)
        case "lt" | "le" if not isinstance(value, str):
            after = d.at_most(before, _strictly(before, value, -1 if sign == "lt" else 0))
        case "gt" | "ge" if not isinstance(value, str):
            after = d.at_least(before, _strictly(before, value, 1 if sign == "gt" else 0))
        case _:
            after = before
    return replace(shape, domain=after)


def _strictly(domain: d.Domain, value: Scalar, step: int) -> Scalar:
    """The next whole value where only whole ones occur."""
    whole = isinstance(value, int) and not isinstance(value, bool) and domain.integral
    return value + step if whole and isinstance(value, int) else value


def _member(fields: tuple[Column, ...], part: Call) -> tuple[Column, ...]:
    column, *options = part.args
    if not isinstance(column, Column) or not all(isinstance(o, Literal) for o in options):
        return fields
    values = [o.value for o in options if isinstance(o, Literal) and o.value is not None]
    return _update(fields, column, lambda s: replace(s, domain=d.among(s.domain, values)))


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
    """For OR: what holds in every branch."""
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


def _update(fields: tuple[Column, ...], column: Column, change: object) -> tuple[Column, ...]:
    assert callable(change)
    return tuple(
        replace(f, shape=replace(change(f.shape), nullable=False))
        if f.number == column.number
        else f
        for f in fields
    )
