"""Roots, powers, exponentials and logarithms: functions of doubles."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpsql.catalog.ends import Ends, domain_between, ends_as, expect_numbers
from dpsql.catalog.function import (
    Function,
    FunctionNode,
    FunctionRecord,
    any_nullable,
    constant,
)
from dpsql.catalog.record import EVERY_DIALECT
from dpsql.ir.domain import nearest
from dpsql.ir.expressions import Expression, Shape
from dpsql.policy.types import Kind


def _curve(name: str, ends: Callable[[Ends], Ends], about: str, *, nullable: bool) -> Function:
    """An increasing function of a double."""

    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        expect_numbers(args, 1, name)
        domain = domain_between(Kind.DOUBLE, ends(ends_as(args[0], Kind.DOUBLE)))
        return Shape(Kind.DOUBLE, nullable or any_nullable(args), domain)

    return Function(name, shape, about)


def _sqrt(a: Ends) -> Ends:
    low, high = a
    first = Fraction(0) if low is None or low <= 0 else Fraction(math.sqrt(low))
    return first, None if high is None else Fraction(math.sqrt(max(high, Fraction(0))))


def _exp(a: Ends) -> Ends:
    low, high = a
    first = Fraction(0) if low is None or low > 700 else _widen(math.exp(low), down=True)
    last = None if high is None or high > 700 else _widen(math.exp(high), down=False)
    return max(first, Fraction(0)), last


def _cbrt(a: Ends) -> Ends:
    low, high = a
    first = None if low is None else _widen(math.cbrt(low), down=True)
    return first, None if high is None else _widen(math.cbrt(high), down=False)


def _logarithm(f: Callable[[float], float]) -> Callable[[Ends], Ends]:
    def ends(a: Ends) -> Ends:
        low, high = a
        first = None if low is None or low <= 0 else _widen(f(float(low)), down=True)
        last = None if high is None or high <= 0 else _widen(f(float(high)), down=False)
        return first, last

    return ends


def _widen(value: float, *, down: bool) -> Fraction:
    """The value moved by more than any engine's rounding error of ``exp``, ``ln`` and ``pow``."""
    slack = Fraction(abs(value)) / 2**40 + Fraction(1, 2**60)
    return Fraction(value) - slack if down else Fraction(value) + slack


def _power_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect_numbers(args, 2, "power")
    exponent = constant(args[1], "the exponent of power").value
    low, high = ends_as(args[0], Kind.DOUBLE)
    ends: Ends = (None, None)
    if isinstance(exponent, int) and 0 <= exponent <= 16 and low is not None and high is not None:
        powers = [low**exponent, high**exponent]
        least = Fraction(0) if exponent and exponent % 2 == 0 and low <= 0 <= high else min(powers)
        ends = _outside(least, down=True), _outside(max(powers), down=False)
    return Shape(Kind.DOUBLE, any_nullable(args), domain_between(Kind.DOUBLE, ends))


def _outside(value: Fraction, *, down: bool) -> Fraction | None:
    """An end of a power, widened unless it is a double.

    Engines return the exact power if it is a double, and nearly the exact power otherwise.
    """
    near = nearest((value, None))[0]
    return near if near is None or near == value else _widen(float(near), down=down)


RECORDS = (
    FunctionRecord(
        function=_curve(
            "sqrt",
            _sqrt,
            "`SQRT(a)`: NULL below 0",
            nullable=True,
        ),
        nodes=(FunctionNode("Sqrt", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("SQRT(y)",),
    ),
    FunctionRecord(
        function=_curve("cbrt", _cbrt, "`CBRT(a)`", nullable=False),
        nodes=(FunctionNode("Cbrt", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("CBRT(x)",),
    ),
    FunctionRecord(
        function=_curve("exp", _exp, "`EXP(a)`", nullable=False),
        nodes=(FunctionNode("Exp", ("this",), ("this",), EVERY_DIALECT),),
        strict=False,
        examples=("EXP(x)",),
    ),
    FunctionRecord(
        function=_curve(
            "ln",
            _logarithm(math.log),
            "`LN(a)`: NULL at and below 0",
            nullable=True,
        ),
        nodes=(FunctionNode("Ln", ("this",), ("this",), EVERY_DIALECT),),
        strict=False,
        examples=("LN(y)",),
    ),
    FunctionRecord(
        function=_curve(
            "log10",
            _logarithm(math.log10),
            "`LOG(a)`, `LOG10(a)`: NULL at and below 0",
            nullable=True,
        ),
        nodes=(FunctionNode("Log", ("this",), ("this",), ()),),
        strict=False,
        examples=("LOG(y)",),
    ),
    FunctionRecord(
        function=Function("power", _power_shape, "`POWER(a, 2)`: a literal exponent"),
        nodes=(FunctionNode("Pow", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),),
        strict=False,
        examples=("POWER(x, 2)",),
    ),
)
