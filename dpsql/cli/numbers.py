"""Formats columns of numbers for people, with as many digits as are meaningful under the noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Ends = tuple[float | None, float | None]
_SKEW = 0.02


def digits(magnitudes: Iterable[float], significant: int) -> int:
    """The number of decimals that show this many significant digits of the smallest magnitude.

    >>> digits([37.0], 2), digits([0.28, 3.1], 2), digits([12345.6], 4)
    (0, 2, 0)
    """
    finite = [m for m in magnitudes if m > 0 and math.isfinite(m)]
    if not finite:
        return 0
    return min(9, max(0, significant - 1 - math.floor(math.log10(min(finite)))))


def decimals(values: Sequence[float | None], ends: Sequence[Ends] | None) -> int:
    """The decimals of a column: for two digits of the half width, or six of the largest value."""
    if ends is not None:
        widths = [(high - low) / 2 for low, high in ends if low is not None and high is not None]
        return digits(widths, 2)
    known = [abs(v) for v in values if v is not None and math.isfinite(v)]
    if all(v == round(v) for v in known):
        return 0
    return digits([max(known)], 6)


def group_thousands(value: float | None, places: int) -> str:
    """A number with thousands separators, and never a negative zero.

    >>> group_thousands(1234567.891, 1), group_thousands(-0.04, 1), group_thousands(None, 0), group_thousands(float("inf"), 2)
    ('1,234,567.9', '0.0', 'null', 'inf')
    """
    if value is None:
        return "null"
    if not math.isfinite(value):
        return str(value)
    rounded = round(value, places)
    return f"{rounded + 0.0 if rounded else 0:,.{places}f}"


def symmetric(values: Sequence[float | None], ends: Sequence[Ends]) -> bool:
    """Whether every value is in the middle of its interval, so that a half width describes it."""
    return all(
        abs((low + high) / 2 - value) <= _SKEW * (high - low)
        for value, (low, high) in zip(values, ends, strict=True)
        if value is not None and low is not None and high is not None
    )


def interval(value: float | None, ends: Ends, places: int, *, centred: bool) -> str:
    """``± w``, or ``low … high`` if the value is not in the middle."""
    low, high = ends
    if value is None or low is None or high is None:
        return ""
    if centred:
        return f"± {group_thousands((high - low) / 2, places)}"
    return f"{group_thousands(low, places)} … {group_thousands(high, places)}"
