"""Arithmetic of decimals: each result is the double nearest to the decimal result in SQL.

A plain sum or product of doubles may differ from that double: ``0.1 * 3 = 0.3`` would be false.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dpsql.catalog.decimals import MANY, all_digits, decimal_name, digits_before, sized_name
from dpsql.catalog.functions import FUNCTIONS
from dpsql.ir.domain import Domain, interval, nearest, numbers
from dpsql.ir.expressions import Call, Expression, Literal
from dpsql.policy.types import MOST_DIGITS, WIDE, Kind, digits_of
from dpsql.sql.bind.literals import literal

_BEHIND: dict[str, Callable[[int, int], int]] = {
    "add": max,
    "subtract": max,
    "modulo": max,
    "multiply": int.__add__,
}
"""The number of digits of a result after the point, from those of its arguments."""
_SAME = frozenset({"negate", "abs", "least", "greatest"})
_STEPS = frozenset({"floor", "ceil", "trunc"})
_BESIDE = Fraction(1, 10**6)


def exact(call: Call) -> Call:
    """A call on decimals whose result is the double nearest to SQL's result; others unchanged.

    Claim: if values have at most 15 digits, the result is the double nearest to SQL's decimal.
    Assumes: doubles are those of IEEE 754, rounded to the nearest.
    Argument: each argument has a relative error of at most 2**-53, so the error of a sum or a
        product is less than half of its last digit. Remainders and rounding are discontinuous, so
        their arguments are made exact first.
    """
    if call.shape.kind is not Kind.DOUBLE:
        return call
    if call.function in _BEHIND:
        return _computed(call)
    if call.function in _SAME:
        return _named(call, decimal_name(call.args))
    if call.function == "round" or call.function in _STEPS:
        held = digits_of(decimal_name(call.args[:1]))
        places = (
            call.args[1].value if len(call.args) > 1 and isinstance(call.args[1], Literal) else 0
        )
        if held is not None and isinstance(places, int):
            return _rounded(call, held[0] - held[1], held[1], places)
        return _named(call, decimal_name(call.args[:1]))
    return call


def _named(call: Call, name: str) -> Call:
    return replace(call, shape=replace(call.shape, type_name=name))


def _computed(call: Call) -> Call:
    found = all_digits(call.args)
    if not found:
        return call
    if MANY in found:
        return _named(call, WIDE)
    (one, more), (other, many) = found
    before = one + other if call.function == "multiply" else max(one, other) + 1
    behind = _BEHIND[call.function](more, many)
    if before + behind > MOST_DIGITS:  # the types allow more digits than the values have
        before = digits_before(call.shape, before)
    name = sized_name(before, behind)
    if name == WIDE:
        return _named(call, name)
    return _to_digits(_of_units(call, behind) if call.function == "modulo" else call, name)


def _of_units(call: Call, behind: int) -> Call:
    """A remainder in units of the last digit: whole numbers, which doubles hold exactly."""
    unit = literal(Fraction(10**behind))
    units = tuple(_call("round", _call("multiply", a, unit)) for a in call.args)
    return _call("divide", _call("modulo", *units), unit)


def _rounded(call: Call, before: int, behind: int, places: int) -> Call:
    """A decimal rounded to fewer digits.

    The value is scaled so that it is rounded at the point: a half is there exactly a double.
    """
    name = sized_name(before + 1, max(places, 0))  # 9.9 becomes 10
    if call.function in _STEPS or places >= behind or not places:
        return _named(call, name)
    unit = literal(Fraction(10 ** abs(places)))
    there, back = ("multiply", "divide") if places > 0 else ("divide", "multiply")
    moved = _to_digits(_call(there, call.args[0], unit), sized_name(0, behind - places))
    return _named(replace(_call(back, _call("round", moved), unit), span=call.span), name)


def _to_digits(call: Call, name: str) -> Call:
    """The call, rounded to the digits of the decimal type ``name``."""
    _, behind = digits_of(name) or (0, 0)
    shape, unit = call.shape, Fraction(1, 10**behind)
    rounded = _call("round", call, literal(behind))
    named = replace(shape, domain=_decimal_ends(shape.domain, unit), type_name=name)
    return replace(rounded, shape=named, span=call.span)


def _decimal_ends(domain: Domain, unit: Fraction) -> Domain:
    """The ends of rounded values: multiples of ``unit``.

    An end that is less than a millionth of ``unit`` from a multiple counts as that multiple.
    """
    low, high = numbers(domain)
    first = None if low is None else math.ceil(low / unit - 1 + _BESIDE) * unit
    last = None if high is None else math.floor(high / unit + 1 - _BESIDE) * unit
    return interval(*nearest((first, last)))


def _call(function: str, *args: Expression) -> Call:
    return Call(function, args, FUNCTIONS[function].shape(args, ""))
