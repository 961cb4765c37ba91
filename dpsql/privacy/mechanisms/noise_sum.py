"""The noise of a number computed from several released numbers: a weighted sum of noise laws.

Nothing here is charged or drawn for an answer. It describes the error of a stored number that was
merged with a later number, or added up from finer groups, so that intervals fit the stored number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from dpsql.privacy.entropy import Randomness
from dpsql.privacy.mechanisms.gaussian import DiscreteGaussian
from dpsql.privacy.mechanisms.laplace import DiscreteLaplace
from dpsql.privacy.mechanisms.truncated_geometric import TruncatedGeometric

Floats = npt.NDArray[np.float64]
Law = DiscreteLaplace | DiscreteGaussian | TruncatedGeometric
_FINE, _BINS = 1000, 1 << 16
"""Bins per standard deviation, and bins in all, which cover 30 deviations to either side."""
_MANY = 32
"""Sums of more draws than this are sampled from the normal law, which is close to theirs."""
_UNIFORM = 1 / 12


@dataclass(frozen=True, slots=True)
class NoiseTerm:
    """``weight`` times the sum of ``count`` independent draws of a law, in steps of ``step``.

    ``rounded``: each draw was rounded to a whole number before it was used.
    """

    law: Law
    step: Fraction = Fraction(1)
    weight: Fraction = Fraction(1)
    count: int = 1
    rounded: bool = False

    @property
    def variance(self) -> float:
        """The variance of the term."""
        one = (self.law.standard_deviation() * float(self.step)) ** 2
        return float(self.weight) ** 2 * self.count * (one + _UNIFORM * self.rounded)

    def sample(self, entropy: Randomness, n: int) -> Floats:
        """``n`` independent draws of the term."""
        if self.count > _MANY:
            return _normal(entropy, n) * math.sqrt(self.variance)
        drawn = self.law.sample(entropy, n * self.count).astype(np.float64) * float(self.step)
        if self.rounded:
            drawn = np.round(drawn)
        return np.asarray(drawn.reshape(n, self.count).sum(axis=1) * float(self.weight))


@dataclass(frozen=True, slots=True)
class NoiseSum:
    """The sum of independent terms; if ``whole``, it is rounded to a whole number when shown.

    >>> NoiseSum((NoiseTerm(DiscreteLaplace(Fraction(10))),)).half_width()
    30.0
    """

    terms: tuple[NoiseTerm, ...]
    whole: bool = False

    def standard_deviation(self) -> float:
        """The root of the sum of variances."""
        only = self.drawn
        if only is not None:
            return only.law.standard_deviation() * float(only.step)
        return math.sqrt(math.fsum(term.variance for term in self.terms))

    def half_width(self) -> float:
        """The width within which the number is of its exact value in 19 of 20 answers."""
        only = self.drawn
        if only is not None:
            width = only.law.half_width() * float(only.step)
            return _whole(width) if self.whole else width
        return _half_width(self)

    def sample(self, entropy: Randomness, n: int) -> Floats:
        """``n`` independent draws."""
        total = np.zeros(n)
        for term in self.terms:
            total += term.sample(entropy, n)
        return np.round(total) if self.whole else total

    @property
    def drawn(self) -> NoiseTerm | None:
        """The only term, if the number has just the noise that it was released with; else None."""
        [first, *rest] = self.terms
        return None if rest or first.weight != 1 or first.count != 1 else first

    def scaled(self, weight: Fraction) -> tuple[NoiseTerm, ...]:
        """The terms of this noise times ``weight``."""
        return tuple(
            NoiseTerm(t.law, t.step, t.weight * weight, t.count, t.rounded) for t in self.terms
        )

    def repeated(self, count: int) -> NoiseSum:
        """The noise of a sum of ``count`` numbers that each have this noise."""
        terms = (NoiseTerm(t.law, t.step, t.weight, t.count * count, t.rounded) for t in self.terms)
        return NoiseSum(tuple(terms), self.whole)


@lru_cache(maxsize=4096)
def _half_width(noise: NoiseSum) -> float:
    """The width within which the sum of all terms lies with probability 95 %."""
    bin_, found = density(noise)
    inside = found[0] + np.concatenate(([0.0], np.cumsum(2 * found[1 : _BINS // 2])))
    within = (int(np.searchsorted(inside, 0.95)) + 0.5) * bin_
    return _whole(within) if noise.whole else within


def density(noise: NoiseSum) -> tuple[float, Floats]:
    """The law of the sum of all terms, by convolution on a fine grid of bins.

    Returns the width of a bin and the probability of each. The bins from zero up come first, then
    those from the lowest up to zero.
    """
    bin_ = noise.standard_deviation() / _FINE
    edges = (np.arange(_BINS + 1) - _BINS // 2 - 0.5) * bin_
    spectrum = np.ones(_BINS // 2 + 1, dtype=np.complex128)
    for term in noise.terms:
        unit = float(term.weight * term.step)
        spectrum *= _spectrum(np.diff(_below(term.law, np.asarray(edges / unit)))) ** term.count
        if term.rounded:
            even = np.diff(np.clip(edges / float(term.weight) + 0.5, 0, 1))
            spectrum *= _spectrum(even) ** term.count
    return bin_, np.fft.irfft(spectrum, _BINS)


def _whole(width: float) -> float:
    """The width for a rounded number: an error of n + 1/2 at most becomes one of n at most."""
    return float(max(0, math.ceil(width - 0.5)))


def _spectrum(density: Floats) -> npt.NDArray[np.complex128]:
    return np.asarray(np.fft.rfft(np.fft.ifftshift(density)))


def _below(law: Law, x: Floats) -> Floats:
    """P(X <= x)."""
    match law:
        case DiscreteLaplace(scale=scale):
            return _laplace_below(float(1 / scale), x)
        case TruncatedGeometric(epsilon=epsilon, bound=bound):
            ends = _laplace_below(float(epsilon), np.array([-bound - 1.0, bound]))
            inside = _laplace_below(float(epsilon), np.clip(x, -bound - 1.0, bound))
            return np.asarray((inside - ends[0]) / (ends[1] - ends[0]))
        case DiscreteGaussian(variance=variance):
            return _gaussian_below(float(variance), x)
        case _:
            assert_never(law)


def _laplace_below(rate: float, x: Floats) -> Floats:
    k, q = np.floor(x), math.exp(-rate)
    right = 1 - np.exp(-rate * (np.maximum(k, 0) + 1)) / (1 + q)
    return np.where(k >= 0, right, np.exp(rate * np.minimum(k, 0)) / (1 + q))


def _gaussian_below(variance: float, x: Floats) -> Floats:
    if variance > 1:
        root = math.sqrt(2 * variance)
        return np.array([0.5 * math.erfc(-(k + 0.5) / root) for k in np.floor(x).tolist()])
    points = np.arange(-40, 41)
    weights = np.exp(-(points**2) / (2 * variance))
    sums = np.concatenate(([0.0], np.cumsum(weights))) / weights.sum()
    return np.asarray(sums[np.clip(np.floor(x) + 41, 0, 81).astype(int)])


def _normal(entropy: Randomness, n: int) -> Floats:
    """Standard normal draws (Box and Muller 1958), for simulation only."""
    radius = (entropy.u64(n).astype(np.float64) + 1) * 2.0**-64
    angle = entropy.u64(n).astype(np.float64) * (math.tau * 2.0**-64)
    return np.asarray(np.sqrt(-2 * np.log(radius)) * np.cos(angle))


def to_plain(noise: NoiseSum) -> dict[str, Any]:
    """The noise as JSON."""
    terms = [
        [_law_plain(t.law), str(t.step), str(t.weight), t.count, t.rounded] for t in noise.terms
    ]
    return {"terms": terms, "whole": noise.whole}


def from_plain(found: Mapping[str, Any]) -> NoiseSum:
    """What ``to_plain`` wrote."""
    terms = (
        NoiseTerm(_law(*law), Fraction(step), Fraction(weight), count, rounded)
        for law, step, weight, count, rounded in found["terms"]
    )
    return NoiseSum(tuple(terms), found["whole"])


def _law_plain(law: Law) -> list[str]:
    match law:
        case DiscreteLaplace(scale=scale):
            return [law.name, str(scale)]
        case DiscreteGaussian(variance=variance):
            return [law.name, str(variance)]
        case TruncatedGeometric(epsilon=epsilon, bound=bound):
            return [law.name, str(epsilon), str(bound)]
        case _:
            assert_never(law)


_LAWS: dict[str, Callable[..., Law]] = {
    DiscreteLaplace.name: DiscreteLaplace,
    DiscreteGaussian.name: DiscreteGaussian,
    TruncatedGeometric.name: lambda epsilon, bound: TruncatedGeometric(epsilon, int(bound)),
}


def _law(name: str, *numbers: str) -> Law:
    return _LAWS[name](*map(Fraction, numbers))
