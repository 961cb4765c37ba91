"""How far off merged and added-up numbers are, held against draws from the samplers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from support.services import Seeded

from dpsql.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, TruncatedGeometric
from dpsql.privacy.mechanisms.noise_sum import NoiseSum, NoiseTerm, from_plain, to_plain

DRAWS = 100_000
LAPLACE, NARROW = DiscreteLaplace(Fraction(10)), DiscreteLaplace(Fraction(1, 2))
GAUSSIAN, THIN = DiscreteGaussian(Fraction(90)), DiscreteGaussian(Fraction(1, 3))
CUT = TruncatedGeometric(Fraction(1, 4), 20)
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)

SUMS = {
    "one": NoiseSum((NoiseTerm(LAPLACE),), whole=True),
    "one on a grid": NoiseSum((NoiseTerm(GAUSSIAN, Fraction(1, 64)),)),
    "three of one": NoiseSum((NoiseTerm(LAPLACE, count=3),), whole=True),
    "few narrow ones": NoiseSum((NoiseTerm(NARROW, count=4),), whole=True),
    "many": NoiseSum((NoiseTerm(LAPLACE, count=50),), whole=True),
    "two merged": NoiseSum(
        (NoiseTerm(LAPLACE, weight=THIRD), NoiseTerm(LAPLACE, weight=1 - THIRD)), whole=True
    ),
    "unlike merged": NoiseSum((NoiseTerm(LAPLACE, weight=HALF), NoiseTerm(GAUSSIAN, weight=HALF))),
    "rounded": NoiseSum(
        (
            NoiseTerm(NARROW, Fraction(1, 2), HALF, rounded=True),
            NoiseTerm(THIN, weight=HALF, rounded=True),
        )
    ),
    "cut": NoiseSum((NoiseTerm(CUT, count=2),)),
    "merged and added up": NoiseSum(
        (NoiseTerm(GAUSSIAN, weight=HALF), NoiseTerm(THIN, weight=HALF))
    ).repeated(5),
}


@pytest.mark.parametrize("name", SUMS)
def test_spread_and_width_are_those_of_what_is_drawn(name):
    noise = SUMS[name]
    drawn = noise.sample(Seeded(7), DRAWS)
    sd, width = noise.standard_deviation(), noise.half_width()
    shown = float(np.sqrt(sd**2 + (1 / 12 if noise.whole and len(noise.terms) > 1 else 0)))
    if name == "rounded":
        assert drawn.std() <= shown, "rounding that hardly moves anything is allowed for in full"
    else:
        assert drawn.std() == pytest.approx(shown, rel=0.06)
    assert abs(drawn.mean()) < 5 * sd / DRAWS**0.5
    covered = float(np.mean(np.abs(drawn) <= width + 1e-9))
    assert covered >= 0.95 - 0.0035
    if not noise.whole and name not in ("rounded", "one on a grid", "cut"):
        assert covered <= 0.96, "no wider than it must be"


def test_a_width_that_is_too_small_would_be_seen():
    noise = SUMS["unlike merged"]
    drawn = noise.sample(Seeded(8), DRAWS)
    assert np.mean(np.abs(drawn) <= 0.93 * noise.half_width()) < 0.95 - 0.0035


def test_merging_by_inverse_variance_has_the_variance_that_was_promised():
    one, other = NoiseSum((NoiseTerm(LAPLACE),)), NoiseSum((NoiseTerm(GAUSSIAN),))
    first, second = (1 / n.standard_deviation() ** 2 for n in (one, other))
    weight = Fraction(first / (first + second)).limit_denominator(2**30)
    merged = NoiseSum((*one.scaled(weight), *other.scaled(1 - weight)))
    assert merged.standard_deviation() == pytest.approx((first + second) ** -0.5, rel=1e-6)


@pytest.mark.parametrize("name", SUMS)
def test_it_is_read_back_as_it_was_written(name):
    assert from_plain(to_plain(SUMS[name])) == SUMS[name]
