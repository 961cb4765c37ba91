"""Discrete Laplace noise: pure epsilon-DP for integers of bounded l1 sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpsql.privacy.accounting import delta_per_group
from dpsql.privacy.discrete_laplace import check_scale, sample_discrete_laplace
from dpsql.privacy.enclosure import Enclosure
from dpsql.privacy.entropy import Randomness

_DIGITS = 60


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Noise with P(x) ~ exp(-|x| / scale).

    >>> DiscreteLaplace(Fraction(10)).half_width()
    30
    """

    scale: Fraction
    name: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        """The sampler covers scales up to 2**40."""
        check_scale(self.scale)

    def sample(self, entropy: Randomness, n: int) -> npt.NDArray[np.int64]:
        """``n`` independent draws."""
        return sample_discrete_laplace(entropy, n, self.scale)

    def standard_deviation(self) -> float:
        """The square root of 2q / (1 - q)**2 for q = exp(-1/scale)."""
        rate = self._rate()
        return math.sqrt(2 * math.exp(-rate)) / -math.expm1(-rate)

    def mean_absolute_error(self) -> float:
        """The mean of abs(X): 2q / (1 - q**2)."""
        rate = self._rate()
        return 2 * math.exp(-rate) / -math.expm1(-2 * rate)

    def half_width(self, confidence: float = 0.95) -> int:
        """The smallest w for which P(abs(X) <= w) >= confidence is proven.

        Claim: P(abs(X) <= w) >= confidence.
        Assumes: X is one draw.
        Argument: P(abs(X) > w) = 2 q**(w + 1) / (1 + q); solved for w + 1 and rounded up.

        >>> DiscreteLaplace(Fraction(10**9)).half_width()
        2995732274
        """
        return max(0, _first_beyond(self.scale, miss(confidence) / 2) - 1)

    def _rate(self) -> float:
        return float(min(1 / self.scale, Fraction(10**4)))


def laplace_for(l1: Fraction | int, epsilon: Fraction) -> DiscreteLaplace:
    """The noise that makes integers of sensitivity ``l1`` epsilon-DP.

    Claim: if one unit changes an integer vector by at most ``l1`` in sum of absolute differences,
        the vector plus independent noise of this law is epsilon-DP.
    Assumes: integers are added exactly; the bound on the change holds.
    Argument: weights of neighbouring integers differ by a factor of exp(1/scale) = exp(epsilon/l1)
        at most, so all coordinates together by at most exp(epsilon).

    >>> laplace_for(3, Fraction(1, 2)).scale
    Fraction(6, 1)
    """
    if l1 <= 0 or epsilon <= 0:
        raise ValueError(f"sensitivity and epsilon must be above 0, not {l1} and {epsilon}")
    return DiscreteLaplace(Fraction(l1) / epsilon)


def laplace_threshold(scale: Fraction, delta: Fraction, groups: int) -> int:
    """The smallest noisy count of units at which a group may be shown.

    Claim: if a unit is alone in at most ``groups`` groups, counts 1 in each, and each count gets
        independent discrete Laplace noise of this scale, then any of these groups reaches the
        threshold with probability at most ``delta``.
    Assumes: ``groups`` bounds the groups of a unit.
    Argument: P(1 + X >= t) = q**(t - 1) / (1 + q) for t >= 1, at most 1 - (1 - delta)**(1 /
        groups) by the choice of t; the groups are independent.

    >>> laplace_threshold(Fraction(1), Fraction(1, 10**6), 1)
    15
    """
    check_scale(scale)
    return 1 + max(0, _first_beyond(scale, delta_per_group(delta, groups)))


def miss(confidence: float) -> Fraction:
    """The probability with which an interval of this confidence may miss the exact value."""
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence must be between 0 and 1, not {confidence}")
    return 1 - Fraction(confidence)


@lru_cache(maxsize=4096)
def _first_beyond(scale: Fraction, chance: Fraction) -> int:
    """The smallest m with q**m / (1 + q) <= chance, which for m >= 0 is P(X >= m)."""
    q = Enclosure.of(-1 / scale, _DIGITS).exp()
    return (-scale * (chance * (1 + q)).ln()).ceil()
