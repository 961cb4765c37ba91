"""The threshold that a released number whose exact value is zero hardly ever reaches."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpsql.privacy.mechanisms.gaussian import DiscreteGaussian, gaussian_threshold
from dpsql.privacy.mechanisms.laplace import DiscreteLaplace, laplace_threshold
from dpsql.privacy.mechanisms.noise_sum import NoiseSum, density


def zero_threshold(noise: NoiseSum, chance: Fraction, groups: int) -> int:
    """A whole number that any of ``groups`` zeros with this noise reaches with at most ``chance``.

    Claim: the result is at least one and depends on public noise laws alone. Among ``groups``
        released whole numbers whose exact values are zero, the probability that any reaches the
        result is at most ``chance``.
    Assumes: the numbers are whole once they are released; noise that was drawn for each group alone
        is independent of that of other groups. Nothing is assumed of merged noise.
    Argument: noise of a single law, as it was drawn, is bounded by the tail of that law. The
        thresholds of ``laplace_threshold`` and ``gaussian_threshold`` are for 1 + X, so they are
        higher by one. For a sum of several laws, a convolution on a fine grid bounds the
        probability for each number by ``chance / groups``; these probabilities add. A number that
        is rounded to t is at least t - 1/2.

    >>> from dpsql.privacy.mechanisms.noise_sum import NoiseTerm
    >>> zero_threshold(NoiseSum((NoiseTerm(DiscreteLaplace(Fraction(10))),), True), Fraction(1, 20), 100)
    70
    """
    term = noise.drawn
    if term is not None and term.step == 1:
        if isinstance(term.law, DiscreteLaplace):
            return max(1, laplace_threshold(term.law.scale, chance, groups) - 1)
        if isinstance(term.law, DiscreteGaussian):
            return max(1, gaussian_threshold(term.law.variance, chance, groups) - 1)
    return _beyond(noise, float(chance / groups))


def _beyond(noise: NoiseSum, chance: float) -> int:
    """The least t >= 1 with P(noise >= t - 1/2) at most ``chance``."""
    width, found = density(noise) if noise.standard_deviation() > 0 else (0.0, np.zeros(2))
    # Noise is symmetric about zero: entry i is the probability of i bins above zero or more.
    above = np.cumsum(found[: len(found) // 2][::-1])[::-1]
    bins = int((above > chance).sum())
    return max(1, math.ceil((bins + 0.5) * width + 0.5))
