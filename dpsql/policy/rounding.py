"""Rounds what was read from rows outwards, so that a draft shows round numbers and not extremes."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime, time
from fractions import Fraction
from math import ceil, floor

from dpsql.policy.types import Scalar

_STEPS = 8
"""A range has at least so many steps: it becomes at most a quarter wider."""
_LONG = 366
"""Days from which on a range of dates has whole years; a shorter one has whole months."""


def round_range(low: Scalar, high: Scalar) -> tuple[Scalar, Scalar]:
    """A range of round numbers, months or years that contains both ends.

    >>> round_range(18, 99), round_range(1, 5), round_range(-43, 1301)
    ((10, 100), (1, 5), (-100, 1400))
    >>> round_range(date(2024, 3, 5), date(2025, 11, 2))
    (datetime.date(2024, 1, 1), datetime.date(2025, 12, 31))
    >>> round_range(Fraction(1, 2), Fraction(300)), round_range("a", "b")
    ((Fraction(0, 1), Fraction(300, 1)), ('a', 'b'))
    """
    match low, high:
        case datetime(), datetime():
            first, last = _months(low.date(), high.date())
            return datetime.combine(first, time.min), datetime.combine(last, time(23, 59, 59, 999999))  # fmt: skip
        case date(), date():
            return _months(low, high)
        case int(), int():
            step = max(1, floor(_step(Fraction(high - low))))
            return low // step * step, -(-high // step) * step
        case ((int() | Fraction()), (int() | Fraction())):
            width = _step(Fraction(high) - Fraction(low))
            return floor(low / width) * width, ceil(high / width) * width
        case _:
            return low, high


def round_up(number: int) -> int:
    """A number of rows, rounded up to two digits.

    >>> round_up(7), round_up(137), round_up(1201)
    (7, 140, 1300)
    """
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step


def _step(width: Fraction) -> Fraction:
    """The largest of 1, 2 and 5 times a power of ten that is at most an eighth of the width."""
    most, power = width / _STEPS, Fraction(1)
    while power > most:
        power /= 10
    while power * 10 <= most:
        power *= 10
    return max(power * factor for factor in (1, 2, 5) if power * factor <= most)


def _months(low: date, high: date) -> tuple[date, date]:
    if (high - low).days >= _LONG:
        return date(low.year, 1, 1), date(high.year, 12, 31)
    last = monthrange(high.year, high.month)[1]
    return low.replace(day=1), high.replace(day=last)
