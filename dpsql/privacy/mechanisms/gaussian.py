"""Discrete Gaussian noise: zCDP for integers of bounded l2 sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpsql.privacy.accounting import delta_per_group
from dpsql.privacy.discrete_gaussian import check_variance, sample_discrete_gaussian
from dpsql.privacy.entropy import Randomness
from dpsql.privacy.gaussian_tail import smallest_under
from dpsql.privacy.mechanisms.laplace import miss

_SMOOTH = 10_000
"""Above this variance the sums over integers equal their integrals to 15 digits."""


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Noise with P(x) ~ exp(-x**2 / (2 variance)).

    >>> DiscreteGaussian(Fraction(100)).half_width()
    20
    """

    variance: Fraction
    name: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        """The sampler covers variances up to 2**80."""
        check_variance(self.variance)

    def sample(self, entropy: Randomness, n: int) -> npt.NDArray[np.int64]:
        """``n`` independent draws."""
        return sample_discrete_gaussian(entropy, n, self.variance)

    def standard_deviation(self) -> float:
        """A little below the square root of ``variance`` when that is small."""
        if self.variance > _SMOOTH:
            return math.sqrt(self.variance)
        return math.sqrt(self._moment(2))

    def mean_absolute_error(self) -> float:
        """The mean of abs(X)."""
        variance = float(self.variance)
        if self.variance > _SMOOTH:
            return (2 * variance - 1 / 6 - 1 / (120 * variance)) / math.sqrt(math.tau * variance)
        return self._moment(1)

    def half_width(self, confidence: float = 0.95) -> int:
        """A w for which P(abs(X) <= w) >= confidence is proven: the smallest, or one more.

        Claim: P(abs(X) <= w) >= confidence.
        Assumes: X is one draw.
        Argument: P(abs(X) > w) = 2 P(X >= w + 1), which ``tail_bound`` bounds from above.

        >>> DiscreteGaussian(Fraction(10**18)).half_width()
        1959963985
        """
        return _first_beyond(self.variance, miss(confidence) / 2) - 1

    def _moment(self, power: int) -> float:
        variance = max(float(self.variance), 1e-300)
        reach = 12 * math.ceil(math.sqrt(variance)) + 1
        weights = [math.exp(-x * x / (2 * variance)) for x in range(1, reach)]
        total = 1 + 2 * math.fsum(weights)
        return 2 * math.fsum(x**power * w for x, w in enumerate(weights, 1)) / total


def gaussian_for(l2_squared: Fraction | int, rho: Fraction) -> DiscreteGaussian:
    """The noise that makes integers of squared l2 sensitivity ``l2_squared`` rho-zCDP.

    Claim: if one unit changes an integer vector by at most sqrt(``l2_squared``) in Euclidean
        length, the vector plus independent noise of this law is rho-zCDP.
    Assumes: integers are added exactly; the bound on the change holds.
    Argument: the Renyi divergence of order alpha between a discrete Gaussian and itself shifted by
        an integer d is at most alpha * d**2 / (2 variance); coordinates add (Canonne, Kamath,
        Steinke 2020, theorem 4).

    >>> gaussian_for(3, Fraction(1, 50)).variance
    Fraction(75, 1)
    """
    if l2_squared <= 0 or rho <= 0:
        raise ValueError(f"sensitivity and rho must be above 0, not {l2_squared} and {rho}")
    return DiscreteGaussian(Fraction(l2_squared) / (2 * rho))


def gaussian_threshold(variance: Fraction, delta: Fraction, groups: int) -> int:
    """The smallest noisy count of units at which a group may be shown.

    Claim: if a unit is alone in at most ``groups`` groups, counts 1 in each, and each count gets
        independent discrete Gaussian noise of this variance, then any of these groups reaches the
        threshold with probability at most ``delta``.
    Assumes: ``groups`` bounds the groups of a unit.
    Argument: P(1 + X >= t) = P(X >= t - 1), which is certainly at most 1 - (1 - delta)**(1 /
        groups) by ``tail_bound``; the groups are independent.

    >>> gaussian_threshold(Fraction(50), Fraction(1, 10**6), 1)
    36
    """
    check_variance(variance)
    return 1 + _first_beyond(variance, delta_per_group(delta, groups))


_first_beyond = lru_cache(maxsize=4096)(smallest_under)
