"""The exponential mechanism: its scale, and how far below the best candidate it may choose."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpsql.privacy.enclosure import Enclosure
from dpsql.privacy.entropy import Randomness
from dpsql.privacy.exponential import Candidates, check_choice_scale, choose
from dpsql.privacy.mechanisms.laplace import miss

_DIGITS = 60


@dataclass(frozen=True, slots=True)
class Exponential:
    """A choice with P(i) ~ exp(utility of i / scale) among at most ``candidates`` candidates.

    >>> Exponential(Fraction(10), 65536).half_width()
    141
    """

    scale: Fraction
    candidates: int
    name: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        """The sampler covers scales up to 2**200."""
        check_choice_scale(self.scale)
        if self.candidates < 1:
            raise ValueError("nothing to choose from")

    def choose(
        self, entropy: Randomness, among: Candidates, units: int = 1
    ) -> npt.NDArray[np.int64]:
        """One candidate of each group; utilities are multiples of ``1/units``."""
        return choose(entropy, among, self.scale * units)

    def standard_deviation(self) -> float:
        """The standard deviation of the rank, if two candidates have each distance from the best.

        This is the case for the rank of a quantile among many distinct values.
        """
        return math.sqrt(2) * float(self.scale)

    def half_width(self, confidence: float = 0.95) -> int:
        """A w such that the choice is at most w below the best, with this probability.

        Claim: P(best utility - chosen utility > w) <= 1 - confidence.
        Assumes: there are at most ``candidates`` candidates, counted with their widths.
        Argument: each candidate more than w below the best has less than exp(-w / scale) of the
            weight of the best, so all of them together less than candidates * exp(-w / scale) of
            the total; w = scale * ln(candidates / (1 - confidence)), rounded up.

        >>> Exponential(Fraction(2), 1000).half_width()
        20
        """
        return self.fall(self.candidates / miss(confidence))

    def fall(self, odds: Fraction) -> int:
        """How far below another a candidate must be to have at most ``1/odds`` of its weight.

        >>> Exponential(Fraction(2), 1000).fall(Fraction(100))
        10
        """
        return _first_within(self.scale, odds)


def exponential_for(span: Fraction | int, epsilon: Fraction, candidates: int) -> Exponential:
    """The choice that is epsilon-DP.

    Claim: let one unit change the difference of any two utilities of group g by at most span_g,
        and let the span_g add up to at most ``span``. Choosing once in each group with the
        returned scale is epsilon-DP.
    Assumes: utilities are computed exactly; choices in different groups are independent.
    Argument: in one group, weights are known up to a common factor, so the log-ratio of the two
        probabilities of a candidate varies over candidates by at most span_g / scale; as both
        add up to 1, it is 0 somewhere in between, hence at most span_g / scale in absolute
        value. Groups add. (A utility moved by at most s in either direction has span 2 s.)

    >>> exponential_for(2, Fraction(1, 10), 100).scale
    Fraction(20, 1)
    """
    if span <= 0 or epsilon <= 0:
        raise ValueError(f"span and epsilon must be above 0, not {span} and {epsilon}")
    return Exponential(span / epsilon, candidates)


def exponential_for_zcdp(
    span_squared: Fraction | int, rho: Fraction, candidates: int
) -> Exponential:
    """The choice that is rho-zCDP.

    Claim: as for ``exponential_for``, with the squares of the span_g adding up to at most
        ``span_squared``, choosing in each group with the returned scale is rho-zCDP.
    Assumes: as for ``exponential_for``.
    Argument: a mechanism whose log-ratios lie in an interval of length e is e**2 / 8-zCDP (Cesar
        and Rogers 2021), so a group costs span_g**2 / (8 scale**2), and groups add. The scale
        is sqrt(span_squared / (8 rho)), enclosed and rounded up.

    >>> exponential_for_zcdp(4, Fraction(1, 200), 100).scale
    Fraction(10, 1)
    """
    if span_squared <= 0 or rho <= 0:
        raise ValueError(f"span and rho must be above 0, not {span_squared} and {rho}")
    square = Fraction(span_squared) / (8 * rho)
    exact = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    if exact * exact == square:
        return Exponential(exact, candidates)
    return Exponential(Enclosure.of(square, _DIGITS).sqrt().round_up(), candidates)


@lru_cache(maxsize=4096)
def _first_within(scale: Fraction, odds: Fraction) -> int:
    return (Enclosure.of(odds, _DIGITS).ln() * scale).ceil()
