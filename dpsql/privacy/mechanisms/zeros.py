"""How high a released number must be to be hardly ever the noise of a zero."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpsql.privacy.mechanisms.gaussian import DiscreteGaussian, gaussian_threshold
from dpsql.privacy.mechanisms.laplace import DiscreteLaplace, laplace_threshold
from dpsql.privacy.mechanisms.noise_sum import NoiseSum, density


def zero_threshold(noise: NoiseSum, chance: Fraction, groups: int) -> int:
    """The least whole number that none of ``groups`` zeros with this noise reaches, but with ``chance``.

    Claim: it is at least one, follows from public noise laws alone, and of ``groups`` released whole
        numbers whose exact values are zero any is as high with probability at most ``chance``.
    Assumes: the numbers are whole once they are released; noise that was drawn for each group alone
        is independent of that of others. Nothing is assumed of noise that was merged.
    Argument: of one law as it was drawn P(X >= t) is bounded by the law itself: the thresholds of
        ``laplace_threshold`` and ``gaussian_threshold`` are for 1 + X, so they are higher by one. Of
        several laws together the chance of each number is at most ``chance / groups``, by
        convolution on a fine grid; then the chances add. A number that is rounded to t is at least
        t - 1/2.

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
    # Noise is as likely above as below zero: entry i is the chance of i bins above it.
    above = np.cumsum(found[: len(found) // 2][::-1])[::-1]
    bins = int((above > chance).sum())
    return max(1, math.ceil((bins + 0.5) * width + 0.5))
