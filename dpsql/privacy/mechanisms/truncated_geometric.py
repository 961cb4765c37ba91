"""Truncated geometric noise, for counts of units in groups that are not public; costs a delta."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpsql.privacy.discrete_laplace import check_scale
from dpsql.privacy.enclosure import Enclosure
from dpsql.privacy.entropy import Randomness
from dpsql.privacy.mechanisms.laplace import miss
from dpsql.privacy.truncated_geometric import LARGEST_BOUND, sample_truncated_geometric


@dataclass(frozen=True, slots=True)
class TruncatedGeometric:
    """Noise with P(x) ~ exp(-epsilon * |x|) on ``[-bound, bound]``, and nothing outside.

    >>> TruncatedGeometric(Fraction(1), 14).half_width()
    3
    """

    epsilon: Fraction
    bound: int
    name: ClassVar[str] = "truncated geometric"

    def __post_init__(self) -> None:
        """The sampler covers 1/epsilon up to 2**40 and bounds up to 2**62."""
        if self.epsilon <= 0 or not 0 <= self.bound <= LARGEST_BOUND:
            raise ValueError(f"no truncated geometric law for {self.epsilon} and {self.bound}")
        check_scale(1 / self.epsilon)

    def sample(self, entropy: Randomness, n: int) -> npt.NDArray[np.int64]:
        """``n`` independent draws."""
        return sample_truncated_geometric(entropy, n, self.epsilon, self.bound)

    def standard_deviation(self) -> float:
        """The square root of the mean of X**2."""
        q, cut, k = self._q(1), self._q(self.bound), self.bound
        rest = (k + 1) ** 2 - (2 * k * k + 2 * k - 1) * q + k * k * q * q
        total = q * (1 + q - cut * rest) / (1 - q) / (1 - q)
        return math.sqrt(max(0.0, float((2 * total / self._mass()).high)))

    def mean_absolute_error(self) -> float:
        """The mean of abs(X)."""
        q, cut, k = self._q(1), self._q(self.bound), self.bound
        total = q * (1 - cut * (k + 1 - k * q)) / (1 - q)
        return max(0.0, float((2 * total / self._mass()).high))

    def half_width(self, confidence: float = 0.95) -> int:
        """The smallest w for which P(abs(X) <= w) >= confidence is proven.

        Claim: P(abs(X) <= w) >= confidence.
        Assumes: X is one draw.
        Argument: with q = exp(-epsilon), P(abs(X) > w) = 2 (q**(w + 1) - q**(K + 1)) / (1 + q - 2
            q**(K + 1)) for w <= K; solved for w + 1 and rounded up.

        >>> TruncatedGeometric(Fraction(1, 10), 109).half_width()
        30
        """
        beyond = self._q(self.bound + 1)
        share = (miss(confidence) * self._mass() + 2 * beyond) / 2
        steps = (-share.ln() / self.epsilon).ceil()
        return min(self.bound, max(0, steps - 1))

    def _q(self, power: int) -> Enclosure:
        """exp(-epsilon * power), with enough digits for the cancellation in the sums."""
        digits = 60 + 3 * len(str(math.ceil(1 / self.epsilon)))
        return Enclosure.of(-self.epsilon * power, digits).exp()

    def _mass(self) -> Enclosure:
        """(1 - q) times the sum of all weights."""
        return 1 + self._q(1) - 2 * self._q(self.bound + 1)


def truncated_geometric_for(epsilon: Fraction, delta: Fraction) -> TruncatedGeometric:
    """The noise for a count of units that is shown only above the bound of the noise.

    Claim: let a unit change one count by at most 1 and let X have the returned law. Showing the
        count plus X if it is above ``bound``, and nothing otherwise, is (epsilon, delta)-DP. For
        a unit in up to k groups, epsilon/k and ``delta_per_group(delta, k)`` for each group make
        the whole (epsilon, delta)-DP.
    Assumes: integers are added exactly; counts of different groups get independent noise.
    Argument: shifting X by 1 multiplies weights by exp(epsilon) at most, except for the one value
        at the edge. P(X = K) = q**K (1 - q) / (1 + q - 2 q**(K + 1)) is at most delta exactly when
        K >= ln((1 - q + 2 delta q) / (delta (1 + q))) / epsilon; K is this number, enclosed and
        rounded up. A count of 0 plus X is never above K, so an empty group is never shown, and a
        group of one is shown only when X = K (Desfontaines, Voss, Gipson, Mandayam 2022).

    >>> truncated_geometric_for(Fraction(1), Fraction(1, 10**6)).bound
    14
    """
    if epsilon <= 0 or not 0 < delta < 1:
        raise ValueError(f"no truncated geometric law for {epsilon} and {delta}")
    check_scale(1 / epsilon)
    return TruncatedGeometric(epsilon, _bound(epsilon, delta))


@lru_cache(maxsize=4096)
def _bound(epsilon: Fraction, delta: Fraction) -> int:
    digits = 60 + len(str(math.ceil(1 / epsilon)))
    q = Enclosure.of(-epsilon, digits).exp()
    ratio = (1 - q + 2 * delta * q) / (delta * (1 + q))
    return max(0, (ratio.ln() / epsilon).ceil())
