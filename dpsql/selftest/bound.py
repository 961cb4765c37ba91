"""A lower bound on epsilon from samples of two neighbouring runs, right with high confidence.

One half of the samples chooses an event that tells the two runs apart, the other half measures it:
if its probability is at least p in one run and at most q in the other, then epsilon is at least
``ln((p - delta) / q)``. Both ends are Clopper-Pearson bounds.

Claim: for answers that are (epsilon, delta)-DP the bound exceeds epsilon with probability at most
    ``alpha``.
Argument: the event is fixed before the second half is looked at; each of the two ends of each
    feature and direction fails with probability at most its share of ``alpha``.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
ABSENT = -(2.0**60)
"""Stands for a group that was not shown."""
NULL = -(2.0**61)
"""Stands for a group that was shown without a value."""


def lower_bound(one: Samples, other: Samples, delta: float, alpha: float) -> float:
    """What epsilon is at least, with confidence ``1 - alpha``, over features and directions."""
    half, found = len(one), [0.0]
    for feature in (_values, _low_bits, _presence):
        codes = feature(np.concatenate([one, other]))
        for first, second in ((codes[:half], codes[half:]), (codes[half:], codes[:half])):
            found.append(_directed(first, second, delta, alpha / 12))
    return max(found)


def _values(samples: Samples) -> Codes:
    """Values in bins of about a twentieth of their spread; what is no number is a bin."""
    samples = np.nan_to_num(samples, nan=-(2.0**59))
    shown = samples > ABSENT
    present = samples[shown]
    width = max(float(np.std(present)) / 20, 2.0**-30) if len(present) else 1.0
    bins = np.rint(np.clip(samples / width, -1e15, 1e15)).astype(np.int64)
    return np.where(shown, bins, np.where(samples == ABSENT, -(2**60), -(2**61)))


def _low_bits(samples: Samples) -> Codes:
    """The lowest binary digit that is set: what naive floating-point noise gives away."""
    mantissa, exponent = np.frexp(np.nan_to_num(samples))
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    lowest = np.log2((whole & -whole).astype(np.float64) + (whole == 0)).astype(np.int64)
    return np.asarray(lowest + exponent, dtype=np.int64)


def _presence(samples: Samples) -> Codes:
    """Whether there is a value, a NULL, or no group at all."""
    return np.asarray((samples == ABSENT) + 2 * (samples == NULL), dtype=np.int64)


def _directed(one: Codes, other: Codes, delta: float, alpha: float) -> float:
    """The bound from events that are likelier in ``one``."""
    half = len(one) // 2
    codes, places = np.unique(np.concatenate([one[:half], other[:half]]), return_inverse=True)
    first = np.bincount(places[:half], minlength=len(codes))
    second = np.bincount(places[half:], minlength=len(codes))
    order = np.argsort(-(first + 0.5) / (second + 0.5), kind="stable")
    ups, downs = np.cumsum(first[order]) / half, np.cumsum(second[order]) / half
    low = ups - 3.5 * np.sqrt(ups * (1 - ups) / half) - 6 / half - delta
    high = downs + 3.5 * np.sqrt(downs * (1 - downs) / half) + 6 / half
    event = codes[order[: int(np.argmax(np.maximum(low, 1e-300) / high)) + 1]]
    n = len(one) - half
    hits, misses = int(np.isin(one[half:], event).sum()), int(np.isin(other[half:], event).sum())
    least, most = at_least(hits, n, alpha) - delta, at_most(misses, n, alpha)
    return math.log(least / most) if least > 0 else -math.inf


def at_least(hits: int, n: int, alpha: float) -> float:
    """A probability that ``hits`` of ``n`` show is reached, wrong with probability ``alpha``.

    >>> round(at_least(50, 100, 0.025), 3), at_least(0, 100, 0.025)
    (0.398, 0.0)
    """
    return 0.0 if hits == 0 else _quantile(hits, n - hits + 1, alpha)


def at_most(hits: int, n: int, alpha: float) -> float:
    """A probability that ``hits`` of ``n`` show is not passed, wrong with probability ``alpha``.

    >>> round(at_most(50, 100, 0.025), 3), at_most(100, 100, 0.025)
    (0.602, 1.0)
    """
    return 1.0 if hits == n else 1 - _quantile(n - hits, hits + 1, alpha)


def _quantile(a: int, b: int, alpha: float) -> float:
    """Below which a beta variable is with probability ``alpha``; never above the true value."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _below(a, b, middle) > alpha * (1 - 1e-9):
            high = middle
        else:
            low = middle
    return low


def _below(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _below(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front += a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    total = d
    for m in range(1, 2_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / _away(1 + term * d), _away(1 + term / c)
            total *= c * d
        if abs(c * d - 1) < 1e-13:
            break
    return math.exp(front) * total / a


def _away(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300
