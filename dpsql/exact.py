"""Exact numbers. Bounds, budgets and scales are Fractions; names of roundings say the direction."""

from __future__ import annotations

import math
import re
import sys
from decimal import Decimal
from fractions import Fraction

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?|[+-]?\d+/\d+", re.ASCII)
_LONGEST = 1000
"""The most digits and decimal places of a number; more are a mistake or an attack on memory."""


def parse_exact(value: str | int | Decimal) -> Fraction:
    """The exact value of a number as written.

    Floats are refused, because they do not preserve what was written.

    >>> parse_exact("0.1"), parse_exact("1e-5"), parse_exact("3/7")
    (Fraction(1, 10), Fraction(1, 100000), Fraction(3, 7))
    >>> parse_exact("nan")
    Traceback (most recent call last):
    ...
    ValueError: not a finite number: 'nan'
    """
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise TypeError(f"not an exact number: {value!r} ({type(value).__name__})")
    if isinstance(value, int):
        return Fraction(value)
    text = str(value).strip()
    if len(text) > _LONGEST or _NUMBER.fullmatch(text) is None:
        raise ValueError(f"not a finite number: {text[:40]!r}")
    whole, _, part = text.partition("/")
    if part:
        if int(part) == 0:
            raise ValueError(f"not a finite number: {text[:40]!r}")
        return Fraction(int(whole), int(part))
    number = Decimal(text)
    if abs(number.adjusted()) > _LONGEST:
        raise ValueError(f"too large or too small a number: {text[:40]!r}")
    return Fraction(number)


def float_up(value: Fraction) -> float:
    """The smallest float that is not below ``value``.

    >>> Fraction(float_up(Fraction(1, 10))) >= Fraction(1, 10) > Fraction(float_down(Fraction(1, 10)))
    True
    """
    nearest = _nearest(value)
    if math.isinf(nearest):
        return nearest if nearest > 0 else -sys.float_info.max
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """The largest float that is not above ``value``.

    >>> float_down(Fraction(10) ** 400)
    1.7976931348623157e+308
    """
    return -float_up(-value)


def ceil_to(value: Fraction, unit_denominator: int) -> int:
    """The number of units of ``1/unit_denominator`` that cover ``value``.

    >>> ceil_to(Fraction(1, 3), 1000)
    334
    """
    return math.ceil(value * unit_denominator)


def floor_to(value: Fraction, unit_denominator: int) -> int:
    """The number of whole units of ``1/unit_denominator`` in ``value``.

    >>> floor_to(Fraction(1, 3), 1000)
    333
    """
    return math.floor(value * unit_denominator)


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def number(value: Fraction) -> str:
    """An exact number, written with few digits.

    >>> number(Fraction(1, 3)), number(Fraction(50)), number(Fraction(1, 10**9))
    ('0.333333', '50', '1e-09')
    """
    return (
        str(value.numerator)
        if value.denominator == 1 and abs(value) < 10**9
        else f"{float(value):.6g}"
    )
