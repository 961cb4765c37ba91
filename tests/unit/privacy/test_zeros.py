"""How high a number must be to be hardly ever the noise of a zero."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from support.services import Seeded

from dpsql.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, TruncatedGeometric
from dpsql.privacy.mechanisms.noise_sum import NoiseSum, NoiseTerm
from dpsql.privacy.mechanisms.zeros import zero_threshold

CHANCE = Fraction(1, 20)
ONE = Fraction(1)
LAWS = {
    "laplace": NoiseTerm(DiscreteLaplace(Fraction(10))),
    "gaussian": NoiseTerm(DiscreteGaussian(Fraction(100))),
    "steps": NoiseTerm(DiscreteLaplace(Fraction(40)), Fraction(1, 4), rounded=True),
    "bounded": NoiseTerm(TruncatedGeometric(Fraction(1, 10), 200)),
    "halves": NoiseTerm(DiscreteLaplace(Fraction(40)), Fraction(1, 8), count=2),
}


def _sum(*terms: NoiseTerm) -> NoiseSum:
    return NoiseSum(terms, whole=True)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("groups", [1, 40])
def test_a_zero_is_as_high_as_often_as_is_said(name: str, groups: int) -> None:
    noise, runs = _sum(LAWS[name]), 20_000
    drawn = noise.sample(Seeded(3), runs * groups).reshape(runs, groups)
    least = zero_threshold(noise, CHANCE, groups)
    beyond = (drawn >= least).any(axis=1).mean()
    assert 0.5 * float(CHANCE) < beyond < 1.1 * float(CHANCE)
    assert (drawn >= least * 0.8).any(axis=1).mean() > 1.1 * float(CHANCE), (
        "it is no higher than need be"
    )


@pytest.mark.parametrize("groups", [1, 7, 1000, 10**6])
def test_merged_laws_agree_with_single_ones(groups: int) -> None:
    for term in (LAWS["laplace"], LAWS["gaussian"]):
        nothing = NoiseTerm(DiscreteLaplace(Fraction(1, 1000)))
        alone = zero_threshold(_sum(term), CHANCE, groups)
        assert alone <= zero_threshold(_sum(term, nothing), CHANCE, groups) <= alone + 2


@pytest.mark.parametrize(
    "law", [DiscreteLaplace(Fraction(1, 10**9)), DiscreteGaussian(Fraction(1, 10**18))]
)
def test_without_noise_one_unit_is_enough(law: DiscreteLaplace | DiscreteGaussian) -> None:
    for term in (NoiseTerm(law), NoiseTerm(law, Fraction(1, 2**20), rounded=True)):
        assert zero_threshold(_sum(term), CHANCE, 10**6) == 1


def test_the_threshold_grows_with_groups_and_noise() -> None:
    found = [zero_threshold(_sum(LAWS["laplace"]), CHANCE, groups) for groups in (1, 10, 100, 1000)]
    assert found == sorted(set(found))
    assert math.isclose(np.diff(found).mean(), 10 * math.log(10), rel_tol=0.1)
