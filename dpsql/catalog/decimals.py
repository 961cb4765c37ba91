"""Decimals: the number of digits of a computed decimal, and the double that represents it.

A decimal is represented by the double nearest to it. A sum or product of such doubles may differ
from the double nearest to the decimal result: ``0.1 * 3 = 0.3`` would be false. Rounding to the
digits of the result gives the nearest double.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from dpsql.ir.domain import numbers
from dpsql.ir.expressions import Expression, Literal, Shape
from dpsql.policy.types import MOST_DIGITS, WIDE, Kind, digits_of

Digits = tuple[int, int]
"""The numbers of digits of a value before and after the decimal point."""
MANY: Digits = (1000, 0)
"""The digits of a value whose scale is not known."""
_WHOLE = {"smallint": 5, "integer": 10}


def digits(value: Expression) -> Digits | None:
    """The digits of a decimal, or of a whole number that may become one; None for doubles."""
    shape = value.shape
    if shape.kind is Kind.NULL:
        return 0, 0
    if shape.kind is Kind.INTEGER:
        return digits_before(shape, _WHOLE.get(shape.type_name, 19)), 0
    if isinstance(value, Literal) and isinstance(value.value, Fraction):
        scales = range(MOST_DIGITS + 1)
        behind = next((n for n in scales if (value.value * 10**n).denominator == 1), None)
        return MANY if behind is None else (digits_before(shape, MOST_DIGITS), behind)
    if shape.type_name == WIDE:
        return MANY
    held = digits_of(shape.type_name)
    return None if held is None else (held[0] - held[1], held[1])


def digits_before(shape: Shape, most: int) -> int:
    """The largest number of digits before the point: that of its bounds, and at most ``most``."""
    low, high = numbers(shape.domain)
    if low is None or high is None:
        return most
    return min(most, len(str(math.ceil(max(abs(low), abs(high))))))


def is_decimal(value: Expression) -> bool:
    """Whether SQL takes a number for a decimal.

    It does if its type is a decimal, if it is computed from decimals, or if it is a constant with a
    decimal point.
    """
    return value.shape.kind is Kind.DOUBLE and digits(value) is not None


def all_digits(args: Sequence[Expression]) -> list[Digits]:
    """The digits of each value; empty if the values together do not make a decimal."""
    found = [own for a in args if (own := digits(a)) is not None]
    return found if len(found) == len(args) and any(map(is_decimal, args)) else []


def sized_name(before: int, behind: int) -> str:
    """The type name of a computed decimal; ``WIDE`` if it has more than ``MOST_DIGITS`` digits."""
    count = max(1, before + behind)
    return f"decimal({count}, {behind})" if count <= MOST_DIGITS else WIDE


def decimal_name(args: Sequence[Expression]) -> str:
    """The name of the decimal type that holds all values; "" if together they are no decimals."""
    found = all_digits(args)
    names = {a.shape.type_name for a in args}
    if not found or (len(names) == 1 and "" not in names):
        return names.pop() if found else ""
    return sized_name(max(before for before, _ in found), max(behind for _, behind in found))
