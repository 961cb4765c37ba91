"""A lower bound on epsilon from samples of two neighbouring runs, valid with high confidence.

One half of the samples chooses an event that distinguishes the two runs, and the other half
measures it. If its probability is at least p in one run and at most q in the other, then epsilon is
at least ``ln((p - delta) / q)``. Both p and q are Clopper-Pearson bounds.

Claim: for answers that satisfy every given claim, no bound exceeds its claim's epsilon, with
    probability at least ``1 - alpha``.
Assumes: the samples of a run are drawn independently, from one distribution.
Argument: the events are fixed before the second half is looked at; each of the two ends of each
    claim, feature and direction fails with probability at most its share of ``alpha``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
ABSENT = -(2.0**60)
"""Stands for a group that was not shown."""
NULL = -(2.0**61)
"""Stands for a group that was shown without a value."""
_NAN = -(2.0**59)
_PRECISE = 1e-9
"""The relative error of computed bounds."""
_FEATURES = 3
"""The number of features of a column of samples."""
_EXACT = 3
"""The number of events whose bounds are computed exactly; the others are far from the best."""
_BINS = 160
"""The number of bins on each side of the median, each an eighth of the interquartile range wide."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim that answers are (epsilon, delta)-differentially private."""

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class Found:
    """A lower bound on epsilon, for a claim that states an upper one."""

    bound: float
    claim: Claim
    plain: float = 0.0
    """The lower bound on epsilon at the first claim's delta."""

    @property
    def excess(self) -> float:
        """By how much the bound exceeds the claim; the claim is disproved if this is above zero."""
        return self.bound - self.claim.epsilon


def lower_bound(
    one: Sequence[Samples], other: Sequence[Samples], claims: Sequence[Claim], alpha: float
) -> Found:
    """The bound nearest to disproving a claim, over columns of samples, features and directions."""
    halves = [codes for pair in zip(one, other, strict=True) for codes in _features(*pair)]
    each = alpha_of_end(alpha, len(one), len(claims))
    events = [
        event
        for codes in halves
        for first, second in (codes, codes[::-1])
        for event in _events(first, second, claims)
    ]
    likely = sorted(events, key=lambda event: event.guess, reverse=True)[:_EXACT]
    found = [Found(0.0, claim) for claim in claims] + [event.found(each) for event in likely]
    plain = max((e for e in events if e.claim == claims[0]), key=lambda event: event.guess)
    return replace(max(found, key=lambda f: f.excess), plain=plain.found(each).bound)


def alpha_of_end(alpha: float, columns: int, claims: int) -> float:
    """The share of ``alpha`` for each end of each bound: there are two ends in two directions."""
    return alpha / (4 * _FEATURES * columns * claims)


def _features(one: Samples, other: Samples) -> Iterator[tuple[Codes, Codes]]:
    """The samples of both runs as small whole numbers, by three features.

    The ends of bins do not depend on the second halves, since events must be fixed before these are
    looked at.
    """
    both, middle = np.concatenate([one, other]), len(one)
    first = np.concatenate([samples[: len(samples) // 2] for samples in (one, other)])
    for found in (_values(both, first), _low_bits(both), _presence(both)):
        codes = found - found.min()
        yield codes[:middle], codes[middle:]


def _values(samples: Samples, first: Samples) -> Codes:
    """Values in bins of an eighth of the spread of ``first``; absent, NULL and NaN get own bins."""
    samples, first = _finite(samples), _finite(first)
    shown, present = samples > _NAN, first[first > _NAN]
    if not len(present):
        present = np.zeros(1)
    quarters = [len(present) * i // 4 for i in (1, 2, 3)]
    low, middle, high = np.partition(present, quarters)[quarters]
    width = max(high - low or float(np.std(np.clip(present, -1e9, 1e9))), 2.0**-30) / 8
    bins = np.clip(np.rint((samples - middle) / width), -_BINS, _BINS).astype(np.int64)
    kinds = np.where(samples == ABSENT, _BINS + 1, np.where(samples == NULL, _BINS + 2, _BINS + 3))
    return np.where(shown, bins, kinds)


def _finite(samples: Samples) -> Samples:
    return np.nan_to_num(samples, nan=_NAN, posinf=2.0**58, neginf=-(2.0**58))


def _low_bits(samples: Samples) -> Codes:
    """The lowest binary digit that is set, which naive floating-point noise reveals."""
    mantissa, exponent = np.frexp(np.nan_to_num(samples))
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    lowest = np.frexp(((whole & -whole) + (whole == 0)).astype(np.float64))[1]
    return np.asarray(lowest + exponent, dtype=np.int64)


def _presence(samples: Samples) -> Codes:
    """Whether there is a value, a NULL, or no group at all."""
    return np.asarray((samples == ABSENT) + 2 * (samples == NULL), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Event:
    """An event chosen by the first halves, and how often it happened in the second halves."""

    claim: Claim
    hits: int
    misses: int
    n: int

    @property
    def guess(self) -> float:
        """Approximately by how much it disproves its claim, to choose events for exact bounds."""
        least, most = (self._end(k, s) for k, s in ((self.hits, -1), (self.misses, 1)))
        return math.log(max(least - self.claim.delta, 1e-300) / most) - self.claim.epsilon

    def _end(self, count: int, side: int) -> float:
        share = count / self.n
        return share + side * (4 * math.sqrt(share * (1 - share) / self.n) + 8 / self.n)

    def found(self, alpha: float) -> Found:
        """The exact bound on epsilon, each of whose ends is wrong with probability ``alpha``."""
        least = at_least(self.hits, self.n, alpha) - self.claim.delta
        most = at_most(self.misses, self.n, alpha)
        return Found(math.log(least / most) if least > 0 else 0.0, self.claim)


def _events(one: Codes, other: Codes, claims: Sequence[Claim]) -> Iterator[_Event]:
    """For each claim, the event, likelier in ``one``, that disproves it best in first halves."""
    half, n = len(one) // 2, len(one) - len(one) // 2
    codes = 1 + max(int(one.max()), int(other.max()))
    first, second = (np.bincount(c[:half], minlength=codes) for c in (one, other))
    order = np.argsort(-(first + 0.5) / (second + 0.5), kind="stable")
    ups, downs = np.cumsum(first[order]) / half, np.cumsum(second[order]) / half
    low = ups - 3.5 * np.sqrt(ups * (1 - ups) / half) - 6 / half
    high = downs + 3.5 * np.sqrt(downs * (1 - downs) / half) + 6 / half
    hits, misses = (np.cumsum(np.bincount(c[half:], minlength=codes)[order]) for c in (one, other))
    for claim in claims:
        at = int(np.argmax(np.maximum(low - claim.delta, 1e-300) / high))
        yield _Event(claim, int(hits[at]), int(misses[at]), n)


def at_least(hits: int, n: int, alpha: float) -> float:
    """A lower bound on a probability with ``hits`` of ``n``, wrong with probability ``alpha``.

    >>> round(at_least(50, 100, 0.025), 3), at_least(0, 100, 0.025)
    (0.398, 0.0)
    """
    return 0.0 if hits == 0 else _quantile(hits, n - hits + 1, alpha)


def at_most(hits: int, n: int, alpha: float) -> float:
    """An upper bound on a probability with ``hits`` of ``n``, wrong with probability ``alpha``.

    >>> round(at_most(50, 100, 0.025), 3), at_most(100, 100, 0.025)
    (0.602, 1.0)
    """
    return 1.0 if hits == n else 1 - _quantile(n - hits, hits + 1, alpha)


def _quantile(a: int, b: int, alpha: float) -> float:
    """The ``alpha`` quantile of a beta variable, never above the true value."""
    low, high = 0.0, a / (a + b) if alpha < 0.25 else 1.0
    if _below(a, b, high) <= alpha:
        high = 1.0
    while high - low > _PRECISE * high:
        middle = (low + high) / 2 if low else high / 2
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
