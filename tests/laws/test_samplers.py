"""Samplers against their exact laws, against OpenDP, and against a planted fault."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from scipy import stats

from dpsql.privacy import bernoulli, discrete_gaussian, truncated_geometric
from dpsql.privacy.entropy import Entropy, Randomness
from dpsql.privacy.geometric import GeometricTable, sample_geometric
from dpsql.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Mechanism,
    TruncatedGeometric,
)

Draws = npt.NDArray[np.int64]
SIZE = 200_000
mp = mpmath.mp.clone()
mp.dps = 30


class Seeded(Randomness):
    """The same fair bits for the same seed."""

    def __init__(self, seed: int) -> None:
        self._cipher = Cipher(AES256(seed.to_bytes(32, "little")), CTR(bytes(16))).encryptor()

    def raw(self, n: int) -> bytes:
        return self._cipher.update(bytes(n))


LAWS: list[Mechanism] = [
    DiscreteLaplace(Fraction(1, 3)),
    DiscreteLaplace(Fraction(1)),
    DiscreteLaplace(Fraction(5, 2)),
    DiscreteLaplace(Fraction(20)),
    DiscreteLaplace(Fraction(1000)),
    DiscreteGaussian(Fraction(1, 4)),
    DiscreteGaussian(Fraction(1)),
    DiscreteGaussian(Fraction(7, 3)),
    DiscreteGaussian(Fraction(400)),
    DiscreteGaussian(Fraction(10**6)),
    TruncatedGeometric(Fraction(1), 14),
    TruncatedGeometric(Fraction(1, 10), 109),
    TruncatedGeometric(Fraction(1, 10), 20),
    TruncatedGeometric(Fraction(1, 1000), 2),
]


def _real(value: Fraction) -> mpmath.mpf:
    return mp.mpf(value.numerator) / value.denominator


@functools.cache
def exact_law(mechanism: Mechanism) -> npt.NDArray[np.float64]:
    """P(X = x) for x from -reach to reach, computed with 30 digits; the rest is below 1e-14."""
    match mechanism:
        case DiscreteLaplace(scale):
            q, reach = mp.exp(-1 / _real(scale)), int(33 * scale) + 33
        case DiscreteGaussian(variance):
            q, reach = mp.exp(-1 / (2 * _real(variance))), int(8 * float(variance) ** 0.5) + 8
        case TruncatedGeometric(epsilon, bound):
            q, reach = mp.exp(-_real(epsilon)), bound
    power = 2 if isinstance(mechanism, DiscreteGaussian) else 1
    half = [q ** (x**power) for x in range(reach + 1)]
    total = 2 * mp.fsum(half) - 1
    return np.array([float(w / total) for w in half[:0:-1] + half])


def chi_square(draws: Draws, law: npt.NDArray[np.float64]) -> float:
    """The p-value of the draws; neighbouring cells are merged until 50 are expected in each."""
    reach = len(law) // 2
    if abs(draws).max() > reach:
        return 0.0
    seen = np.bincount(draws + reach, minlength=len(law)).astype(float)
    expected = law * len(draws)
    wanted = max(50.0, len(draws) / 400)
    cell = np.minimum(np.cumsum(expected) // wanted, len(draws) // wanted - 1).astype(int)
    _, cell = np.unique(cell, return_inverse=True)
    seen, expected = np.bincount(cell, seen), np.bincount(cell, expected)
    seen, expected = seen[expected >= 5], expected[expected >= 5]
    assert len(seen) > 1
    return float(stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue)


@pytest.mark.parametrize("mechanism", LAWS, ids=str)
def test_draws_follow_the_exact_law(mechanism: Mechanism) -> None:
    assert chi_square(mechanism.sample(Seeded(2026), SIZE), exact_law(mechanism)) > 1e-4
    assert chi_square(mechanism.sample(Entropy(), SIZE), exact_law(mechanism)) > 1e-9


def _off_by_30_percent(mechanism: Mechanism) -> Mechanism:
    match mechanism:
        case DiscreteLaplace(scale):
            return DiscreteLaplace(scale * 13 / 10)
        case DiscreteGaussian(variance):
            return DiscreteGaussian(variance * 169 / 100)
        case TruncatedGeometric(epsilon, bound):
            return TruncatedGeometric(epsilon * 7 / 10, bound)


@pytest.mark.parametrize("mechanism", [m for m in LAWS if getattr(m, "bound", 9) > 2], ids=str)
def test_a_scale_off_by_30_percent_is_noticed(mechanism: Mechanism) -> None:
    faulty = _off_by_30_percent(mechanism).sample(Seeded(1), SIZE)
    assert chi_square(faulty, exact_law(mechanism)) < 1e-20


def test_small_faults_of_other_kinds_are_noticed() -> None:
    mechanism = DiscreteLaplace(Fraction(20))
    draws = mechanism.sample(Seeded(3), SIZE)
    for faulty in (draws + 1, np.abs(draws), draws // 2 * 2, np.where(draws == 0, 1, draws)):
        assert chi_square(faulty, exact_law(mechanism)) < 1e-20


def test_the_part_above_the_bits_is_drawn_right() -> None:
    """With a tail that begins at once, most numbers take the path that is otherwise never taken."""
    rate = Fraction(1, 20)
    table = GeometricTable(rate, tail_rate=1)
    assert table.width == 5
    draws = sample_geometric(Seeded(4), 50_000, table)
    assert (draws >= 32).mean() > 0.1
    weights = np.exp(-float(rate) * np.arange(900))
    law = np.concatenate([np.zeros(899), weights / weights.sum()])
    seen = np.bincount(draws, minlength=900)[:900]
    big = law[899:] * len(draws) > 20
    assert seen[~big].sum() < 2 * (law[899:][~big].sum() * len(draws)) + 100
    expected = law[899:][big] * seen[big].sum() / law[899:][big].sum()
    assert stats.chisquare(seen[big], expected).pvalue > 1e-4


@pytest.mark.parametrize(
    ("module", "mechanism"),
    [
        (discrete_gaussian, DiscreteGaussian(Fraction(400))),
        (discrete_gaussian, DiscreteGaussian(Fraction(7, 3))),
        (truncated_geometric, TruncatedGeometric(Fraction(1, 10), 20)),
    ],
    ids=["gaussian", "narrow gaussian", "truncated geometric"],
)
def test_exact_fallbacks_give_the_same_law(
    module: Any, mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a hundred million times wider margins, many tosses are settled by exact digits."""
    settled: list[Fraction] = []
    original = bernoulli.exp_minus

    def counting(x: Fraction) -> bernoulli.Probability:
        settled.append(x)
        return original(x)

    expected = mechanism.sample(Seeded(5), 5_000)
    monkeypatch.setattr(bernoulli, "exp_minus", counting)
    monkeypatch.setattr(
        module, "keep_with_exp", functools.partial(bernoulli.keep_with_exp, slack=0.3)
    )
    draws = mechanism.sample(Seeded(5), 5_000)
    assert len(settled) > 500
    assert (draws == expected).all()
    assert chi_square(draws, exact_law(mechanism)) > 1e-4


def _two_samples(one: Draws, two: Draws) -> float:
    edges = np.unique(np.quantile(np.concatenate([one, two]), np.linspace(0, 1, 40)[1:-1]))
    table = np.array(
        [np.bincount(np.searchsorted(edges, side), minlength=len(edges) + 1) for side in (one, two)]
    )
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue)


@functools.cache
def _opendp(kind: str, scale: float) -> Draws:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = (dp.vector_domain(dp.atom_domain(T=int)),)
    if kind == "laplace":
        measurement = dp.m.make_laplace(*space, dp.l1_distance(T=int), scale)
    else:
        measurement = dp.m.make_gaussian(*space, dp.l2_distance(T=float), scale)
    return np.array(measurement([0] * 40_000))


@pytest.mark.parametrize("scale", [1, 50, 10**6])
@pytest.mark.parametrize(
    ("kind", "ours"),
    [
        ("laplace", lambda scale: DiscreteLaplace(Fraction(scale))),
        ("gaussian", lambda scale: DiscreteGaussian(Fraction(scale) ** 2)),
    ],
)
def test_draws_agree_with_opendp(
    kind: str, ours: Callable[[Fraction], Mechanism], scale: int
) -> None:
    theirs = _opendp(kind, float(scale))
    assert _two_samples(ours(Fraction(scale)).sample(Entropy(), 100_000), theirs) > 1e-9
    faulty = ours(Fraction(scale) * 13 / 10).sample(Entropy(), 100_000)
    assert _two_samples(faulty, theirs) < 1e-20


@pytest.mark.parametrize("mechanism", LAWS, ids=str)
def test_neighbours_in_a_stream_are_unrelated(mechanism: Mechanism) -> None:
    draws = mechanism.sample(Seeded(6), SIZE).astype(float)
    for lag in (1, 63, 64):
        correlation = float(np.corrcoef(draws[:-lag], draws[lag:])[0, 1])
        assert abs(correlation) < 6 / SIZE**0.5


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", LAWS, ids=str)
def test_twenty_million_draws_follow_the_exact_law(mechanism: Mechanism) -> None:
    draws = np.concatenate([mechanism.sample(Entropy(), 1_000_000) for _ in range(20)])
    assert chi_square(draws, exact_law(mechanism)) > 1e-9
