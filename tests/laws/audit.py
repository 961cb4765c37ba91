"""A lower bound on epsilon from samples of two neighbouring runs, right with high confidence.

Half of the samples choose an event that tells the two apart, the other half measure it: if
``P(event)`` is at least ``p`` in one run and at most ``q`` in the other, then epsilon is at least
``ln((p - delta) / q)``. Both ends are Clopper-Pearson bounds.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import stats

Samples = npt.NDArray[np.float64]
ALPHA = 1e-3
ABSENT = -(2.0**60)
"""Stands for a group that was not shown."""


def lower_bound(one: Samples, other: Samples, delta: float = 0.0) -> float:
    """What epsilon is at least, with confidence 1 - ALPHA, over features and both directions."""
    half, found = len(one), [0.0]
    for feature in (_values, _low_bits):
        codes = feature(np.concatenate([one, other]))
        for first, second in ((codes[:half], codes[half:]), (codes[half:], codes[:half])):
            found.append(_directed(first, second, delta))
    return max(found)


def _values(samples: Samples) -> npt.NDArray[np.int64]:
    """Values in bins of about a twentieth of their spread."""
    present = samples[samples > ABSENT]
    width = max(float(np.std(present)) / 20, 2.0**-30) if len(present) else 1.0
    return np.where(
        samples > ABSENT, np.rint(np.clip(samples, -1e15, 1e15) / width), -(2.0**50)
    ).astype(np.int64)


def _low_bits(samples: Samples) -> npt.NDArray[np.int64]:
    """The lowest binary digit that is set: what naive floating-point noise gives away."""
    mantissa, exponent = np.frexp(samples)
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    return np.log2((whole & -whole).astype(np.float64) + (whole == 0)).astype(np.int64) + exponent


def _directed(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64], delta: float) -> float:
    """The bound from events that are likelier in ``one``."""
    half = len(one) // 2
    codes, places = np.unique(np.concatenate([one[:half], other[:half]]), return_inverse=True)
    first = np.bincount(places[:half], minlength=len(codes))
    second = np.bincount(places[half:], minlength=len(codes))
    order = np.argsort(-(first + 0.5) / (second + 0.5), kind="stable")
    ups, downs = np.cumsum(first[order]), np.cumsum(second[order])
    scores = [_bound(int(u), int(d), half, delta) for u, d in zip(ups, downs, strict=True)]
    event = codes[order[: int(np.argmax(scores)) + 1]]
    hits, misses = np.isin(one[half:], event).sum(), np.isin(other[half:], event).sum()
    return _bound(int(hits), int(misses), len(one) - half, delta)


def _bound(hits: int, misses: int, n: int, delta: float) -> float:
    share = ALPHA / 8
    low = stats.beta.ppf(share, hits, n - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - share, misses + 1, n - misses) if misses < n else 1.0
    return math.log((low - delta) / high) if low > delta else -math.inf
