"""Arithmetic of numbers. Whole numbers are computed as in PostgreSQL: ``7 / 2`` is 3."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpsql.catalog.ends import (
    Ends,
    domain_between,
    ends_as,
    exclude_zero,
    expect_numbers,
    is_small,
    map_ends,
    may_be_nan,
)
from dpsql.catalog.function import (
    Function,
    FunctionNode,
    FunctionRecord,
    any_nullable,
)
from dpsql.catalog.record import EVERY_DIALECT
from dpsql.ir.domain import interval
from dpsql.ir.expressions import Expression, Shape
from dpsql.policy.types import Kind


def _binary(name: str, symbol: str, ends: Callable[[Ends, Ends], Ends], about: str) -> Function:
    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        kind = expect_numbers(args, 2, symbol)
        low, high = ends(ends_as(args[0], kind), ends_as(args[1], kind))
        if may_be_nan(args):
            high = None
        # Whole-number results may leave 64 bits: the engine then answers NULL.
        may_overflow = kind is Kind.INTEGER and not is_small((low, high))
        return Shape(kind, may_overflow or any_nullable(args), domain_between(kind, (low, high)))

    return Function(name, shape, about)


def _plus(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return None if a is None or b is None else a + b


def _minus(a: Ends) -> Ends:
    return (None if a[1] is None else -a[1], None if a[0] is None else -a[0])


def _add(a: Ends, b: Ends) -> Ends:
    return _plus(a[0], b[0]), _plus(a[1], b[1])


def _subtract(a: Ends, b: Ends) -> Ends:
    return _add(a, _minus(b))


def _multiply(a: Ends, b: Ends) -> Ends:
    return _corners(a, b, lambda x, y: x * y)


def _corners(a: Ends, b: Ends, f: Callable[[Fraction, Fraction], Fraction]) -> Ends:
    """The ends of a function that is monotone in each argument: they are reached at the corners."""
    known = [f(x, y) for x in a for y in b if x is not None and y is not None]
    return (min(known), max(known)) if len(known) == 4 else (None, None)


def _divide_shape(args: tuple[Expression, ...], _: str) -> Shape:
    kind = expect_numbers(args, 2, "/")
    top, bottom = ends_as(args[0], kind), ends_as(args[1], kind)
    nonzero = exclude_zero(bottom)
    ends: Ends = (None, None)
    if nonzero:
        ends = _corners(top, bottom, lambda x, y: x / y)
    elif kind is Kind.INTEGER:
        ends = _reach(top)
    if kind is Kind.INTEGER:
        ends = _trunc(ends)
    nullable = any_nullable(args) or not nonzero or _may_leave(kind, top, bottom)
    return Shape(kind, nullable, domain_between(kind, ends))


def _reach(a: Ends) -> Ends:
    """The symmetric interval around 0 up to the argument's largest absolute value."""
    if a[0] is None or a[1] is None:
        return None, None
    reach = max(abs(a[0]), abs(a[1]))
    return -reach, reach


def _may_leave(kind: Kind, top: Ends, bottom: Ends) -> bool:
    """Whether the quotient of the least 64-bit number by -1 is possible: it exceeds 64 bits."""
    if kind is not Kind.INTEGER or (top[0] is not None and top[0] > -(2**63)):
        return False
    return not (exclude_zero(bottom) and bottom[0] is not None and bottom[0] > -1)


def _modulo_shape(args: tuple[Expression, ...], _: str) -> Shape:
    """The shape of ``a % b``.

    The remainder has the sign of ``a``. Its absolute value is below that of ``b``, and at most that
    of ``a``.
    """
    kind = expect_numbers(args, 2, "%")
    top, bottom = ends_as(args[0], kind), ends_as(args[1], kind)
    within = [r for r in (_reach(top)[1], _reach(bottom)[1]) if r is not None]
    if kind is Kind.INTEGER and _reach(bottom)[1] is not None:
        within[-1] = max(Fraction(0), within[-1] - 1)
    high = min(within, default=None)
    low = None if high is None else -high
    if top[0] is not None and top[0] >= 0:
        low = Fraction(0)
    if top[1] is not None and top[1] <= 0:
        high = Fraction(0)
    if kind is Kind.DOUBLE and (None in top or may_be_nan(args)):
        high = None  # the remainder of an infinite number is NaN
    nullable = any_nullable(args) or not exclude_zero(bottom) or _may_leave(kind, top, bottom)
    return Shape(kind, nullable, domain_between(kind, (low, high)))


def _signed(name: str, ends: Callable[[Ends], Ends], about: str) -> Function:
    """A function that keeps the kind and may change the sign.

    The negation of the least 64-bit number exceeds 64 bits: the result is NULL there.
    """

    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        kind = expect_numbers(args, 1, name)
        before = ends_as(args[0], kind)
        low, high = ends(before)
        if may_be_nan(args):
            high = None
        leaves = kind is Kind.INTEGER and (before[0] is None or before[0] <= -(2**63))
        return Shape(kind, any_nullable(args) or leaves, domain_between(kind, (low, high)))

    return Function(name, shape, about)


def _abs(a: Ends) -> Ends:
    low, high = a
    if low is None or high is None:
        return Fraction(0), None
    least = Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))
    return least, max(abs(low), abs(high))


def _trunc(a: Ends) -> Ends:
    return map_ends(a, lambda e: Fraction(math.trunc(e)))


def _sign_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect_numbers(args, 1, "sign")
    return Shape(Kind.INTEGER, any_nullable(args), interval(-1, 1, integral=True))


RECORDS = (
    FunctionRecord(
        function=_binary("add", "+", _add, "`a + b`"),
        nodes=(FunctionNode("Add", ("this", "expression"), None, ("duckdb", "bigquery")),),
        strict=True,
        examples=("x + 1",),
    ),
    FunctionRecord(
        function=_binary("subtract", "-", _subtract, "`a - b`"),
        nodes=(FunctionNode("Sub", ("this", "expression"), None, ("duckdb",)),),
        strict=True,
        examples=("x - 1",),
    ),
    FunctionRecord(
        function=_binary("multiply", "*", _multiply, "`a * b`"),
        nodes=(FunctionNode("Mul", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),),
        strict=True,
        examples=("x * 2",),
    ),
    FunctionRecord(
        function=Function(
            "divide", _divide_shape, "`a / b`: NULL when b is 0; whole for whole numbers"
        ),
        nodes=(FunctionNode("Div", ("this", "expression", "typed", "safe"), None, ()),),
        strict=True,
        examples=("x / y",),
    ),
    FunctionRecord(
        function=Function("modulo", _modulo_shape, "`a % b`, `MOD(a, b)`: NULL when b is 0"),
        nodes=(FunctionNode("Mod", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),),
        strict=True,
        examples=("n % 2",),
    ),
    FunctionRecord(
        function=_signed("negate", _minus, "`-a`"),
        nodes=(FunctionNode("Neg", ("this",), None, EVERY_DIALECT),),
        strict=True,
        examples=("-x",),
    ),
    FunctionRecord(
        function=_signed("abs", _abs, "`ABS(a)`"),
        nodes=(FunctionNode("Abs", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("ABS(x)",),
    ),
    FunctionRecord(
        function=Function(
            "sign",
            _sign_shape,
            "`SIGN(a)`",
        ),
        nodes=(FunctionNode("Sign", ("this",), ("this",), EVERY_DIALECT),),
        strict=False,
        examples=("SIGN(x)",),
    ),
)
