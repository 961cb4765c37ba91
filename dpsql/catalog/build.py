"""Helpers that build finishing expressions: the post-processing of noisy columns, as typed IR."""

from __future__ import annotations

from fractions import Fraction

from dpsql.catalog.functions import FUNCTIONS
from dpsql.ir.domain import interval
from dpsql.ir.expressions import Call, Expression, Literal, Shape, conjuncts
from dpsql.policy.types import Kind


def call(function: str, *args: Expression, option: str = "") -> Expression:
    """A typed call of a registered function."""
    return Call(function, args, FUNCTIONS[function].shape(args, option), option)


def real(value: Fraction) -> Literal:
    """An exact constant, used as a double."""
    return Literal(value, Shape(Kind.DOUBLE, nullable=False, domain=interval(value, value)))


def whole(value: int) -> Literal:
    """A whole-number constant."""
    domain = interval(value, value, integral=True)
    return Literal(value, Shape(Kind.INTEGER, nullable=False, domain=domain))


def clamp(value: Expression, low: Fraction, high: Fraction) -> Expression:
    """The value clamped to the bounds."""
    return call("least", call("greatest", value, real(low)), real(high))


def not_null(value: Expression, where: Expression | None) -> Expression | None:
    """The condition that ``value`` is not NULL and ``where`` holds; None if it always holds."""
    parts = [] if where is None else conjuncts(where)
    if value.shape.nullable:
        parts = [*parts, call("not", call("is_null", value))]
    if not parts:
        return None
    whole_condition = parts[0]
    for part in parts[1:]:
        whole_condition = call("and", whole_condition, part)
    return whole_condition
