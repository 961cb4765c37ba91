"""The power of a question: the smallest faults that its samples would notice."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

_RARE = 1.3
"""A number of standard deviations: nine of ten runs are above the mean minus this many."""
_MOST = 64.0
"""An epsilon that no test can distinguish from a larger one."""


@dataclass(frozen=True, slots=True)
class Power:
    """The faults that one question would notice in answers charged with ``charge``.

    ``shown`` is a lower bound on the epsilon that the answers show: noise that is charge / shown
    times too narrow would be noticed. ``least`` is the smallest epsilon of a fault that could be
    noticed at best.
    """

    charge: float
    shown: float
    least: float


@lru_cache(maxsize=4096)
def least_noticed(samples: int, epsilon: float, delta: float, alpha: float) -> float:
    """The least epsilon that this many samples a side distinguish from the claim, or infinity.

    Claim: let x be the result, and let one event have the odds exp(x) in one run and exp(-x) in the
        other. If that event is chosen, at least nine runs of ten disprove (``epsilon``, ``delta``).
    Assumes: the samples of a run are drawn independently, from one distribution.
    Argument: no event distinguishes answers of this epsilon better. In nine of ten runs, hits and
        misses in the second halves are within ``_RARE`` deviations of their means. Chernoff's
        bounds from these are never tighter than the bounds of ``selftest.bound``.

    >>> least_noticed(100_000, 1.0, 0.0, 1e-11) < 1.1 < least_noticed(2_000, 1.0, 0.0, 1e-11) < 2
    True
    >>> least_noticed(20, 1.0, 0.0, 1e-11)
    inf
    """
    n, depth = samples - samples // 2, -math.log(alpha)
    if not _shown(n, _MOST, delta, depth) > epsilon:
        return math.inf
    low, high = epsilon, _MOST
    while high - low > 0.002 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _shown(n, middle, delta, depth) > epsilon else (middle, high)
    return high


def _shown(n: int, epsilon: float, delta: float, depth: float) -> float:
    """The bound that second halves of n samples give for answers of this epsilon."""
    rare = 1 / (1 + math.exp(epsilon))
    misses = min(1.0, rare + _RARE * math.sqrt(rare * (1 - rare) / n) + 1 / n)
    most = _farthest(misses, lambda q: n * _divergence(misses, q) <= depth)
    least = 1 - most - delta
    return math.log(least / most) if least > 0 else 0.0


def _farthest(start: float, near: Callable[[float], bool]) -> float:
    """The largest probability above ``start`` for which ``near`` still holds."""
    low, high = start, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if near(middle) else (low, middle)
    return high


def _divergence(share: float, of: float) -> float:
    """The evidence of a share of samples against a probability, in nats per sample."""
    found = 0.0
    for p, q in ((share, of), (1 - share, 1 - of)):
        if p > 0:
            found += p * math.log(p / q) if q > 0 else math.inf
    return found


def describe_powers(powers: Sequence[Power]) -> list[str]:
    """The faults that all questions together would notice, in words."""
    seen = [p.charge / p.shown for p in powers if p.shown > 0]
    blind = [p.least / p.charge for p in powers if p.shown <= 0]
    said = []
    if seen:
        said.append(
            f"{len(seen)} of {len(powers)} questions show who is missing: half of them would notice noise that is"
            f" {statistics.median(seen):.2f} times too narrow, nine of ten {_ninth(seen):.2f} times"
        )
    if blind:
        said.append(
            f"{len(blind)} do not: half of them would notice an answer that reveals "
            f"{statistics.median(blind):.3g} times its charge, nine of ten {_ninth(blind):.3g} "
            "times"
        )
    never = sum(math.isinf(p.least) for p in powers)
    if never:
        said.append(f"{never} have too few samples to notice anything but errors")
    return said


def _ninth(values: Sequence[float]) -> float:
    """The value that nine of ten values do not exceed."""
    return sorted(values)[math.ceil(0.9 * len(values)) - 1]
