"""Rounding of numbers. Halves are rounded away from zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpsql.catalog.ends import (
    Ends,
    domain_between,
    ends_as,
    expect_numbers,
    is_small,
    map_ends,
)
from dpsql.catalog.function import (
    Function,
    FunctionNode,
    FunctionRecord,
    Mismatch,
    any_nullable,
    constant,
    expect,
)
from dpsql.catalog.record import EVERY_DIALECT
from dpsql.ir.expressions import Expression, Shape
from dpsql.policy.types import Kind


def _stepped(name: str, whole: Callable[[Fraction], int], about: str) -> Function:
    """An increasing function to whole values that leaves whole arguments unchanged."""

    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        kind = expect_numbers(args, 1, name)
        ends = map_ends(ends_as(args[0], kind), lambda e: Fraction(whole(e)))
        return Shape(kind, any_nullable(args), domain_between(kind, ends, integral=True))

    return Function(name, shape, about)


def round_digits(args: tuple[Expression, ...]) -> int:
    """The number of digits after the point to which ``round`` with these arguments rounds."""
    if len(args) == 1:
        return 0
    value = constant(args[1], "the number of digits of round").value
    if isinstance(value, bool) or not isinstance(value, int) or not -15 <= value <= 15:
        raise Mismatch("round takes a literal number of digits from -15 to 15")
    return value


def _round_shape(args: tuple[Expression, ...], _: str) -> Shape:
    """The shape of ROUND. Halves are rounded away from zero, as PostgreSQL rounds ``numeric``."""
    expect(args, range(1, 3), "round")
    kind = expect_numbers(args[:1], 1, "round")
    digits = round_digits(args)
    before = ends_as(args[0], kind)
    if kind is Kind.INTEGER and digits >= 0:
        return Shape(kind, any_nullable(args), domain_between(kind, before))
    step = Fraction(10) ** -digits
    low, high = before
    ends: Ends = (
        None if low is None else math.floor(low / step) * step,
        None if high is None else math.ceil(high / step) * step,
    )
    leaves = kind is Kind.INTEGER and not is_small(ends)
    return Shape(
        kind, any_nullable(args) or leaves, domain_between(kind, ends, integral=digits <= 0)
    )


RECORDS = (
    FunctionRecord(
        function=_stepped("floor", math.floor, "`FLOOR(a)`"),
        nodes=(FunctionNode("Floor", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("FLOOR(x)",),
    ),
    FunctionRecord(
        function=_stepped("ceil", math.ceil, "`CEIL(a)`"),
        nodes=(FunctionNode("Ceil", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("CEIL(x)",),
    ),
    FunctionRecord(
        function=_stepped("trunc", math.trunc, "`TRUNC(a)`"),
        nodes=(FunctionNode("Trunc", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("TRUNC(x)",),
    ),
    FunctionRecord(
        function=Function("round", _round_shape, "`ROUND(a)`, `ROUND(a, 2)`"),
        nodes=(
            FunctionNode(
                "Round", ("this", "decimals"), ("this", "decimals"), ("duckdb", "bigquery")
            ),
        ),
        strict=True,
        examples=("ROUND(x)",),
    ),
)
