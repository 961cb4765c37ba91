"""The exponential mechanism against its exact law, a planted fault, and neighbouring histograms."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from scipy import stats

from dpsql.privacy.entropy import Entropy, Randomness
from dpsql.privacy.exponential import Candidates, choose

mp = mpmath.mp.clone()
mp.dps = 30
SIZE = 60_000
CASES: list[tuple[list[int], list[int], Fraction]] = [
    ([0, -1, -2, -3, -4, -5], [1, 1, 1, 1, 1, 1], Fraction(1)),
    ([3, -10, 0, 2, 9, 9], [1, 5, 0, 700, 2, 1], Fraction(7, 3)),
    ([0, 10**6, 5 * 10**5], [10**3, 1, 40], Fraction(10**5)),
    ([-(abs(40 - i)) for i in range(100)], [1] * 100, Fraction(20)),
]


class Seeded(Randomness):
    """The same fair bits for the same seed."""

    def __init__(self, seed: int) -> None:
        self._cipher = Cipher(AES256(seed.to_bytes(32, "little")), CTR(bytes(16))).encryptor()

    def raw(self, n: int) -> bytes:
        return self._cipher.update(bytes(n))


def law(utilities: list[int], widths: list[int], scale: Fraction) -> npt.NDArray[np.float64]:
    best = max(utilities)
    rate = mp.mpf(scale.denominator) / scale.numerator
    weights = [w * mp.exp((u - best) * rate) for u, w in zip(utilities, widths, strict=True)]
    return np.array([float(w / mp.fsum(weights)) for w in weights])


def draws(
    case: tuple[list[int], list[int], Fraction],
    seed: int,
    size: int = SIZE,
    slack: float = 2.0**-38,
) -> npt.NDArray[np.float64]:
    utilities, widths, scale = case
    groups = Candidates(
        np.tile(utilities, size), np.tile(widths, size), np.full(size, len(utilities))
    )
    found = choose(Seeded(seed), groups, scale, slack)
    return np.bincount(found, minlength=len(utilities)).astype(float)


def p_value(seen: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]) -> float:
    possible = expected > 0
    assert seen[~possible].sum() == 0
    return float(stats.chisquare(seen[possible], expected[possible] * seen.sum()).pvalue)


@pytest.mark.parametrize("case", CASES)
def test_choices_follow_the_exact_law(case: tuple[list[int], list[int], Fraction]) -> None:
    assert p_value(draws(case, 1), law(*case)) > 1e-4


@pytest.mark.parametrize("case", CASES)
def test_a_forgotten_factor_of_two_is_noticed(case: tuple[list[int], list[int], Fraction]) -> None:
    utilities, widths, scale = case
    assert p_value(draws((utilities, widths, scale / 2), 2), law(*case)) < 1e-20


@pytest.mark.parametrize("case", CASES)
def test_the_exact_path_gives_the_same_choices(
    case: tuple[list[int], list[int], Fraction],
) -> None:
    """With a margin of everything each choice is settled by enclosures of the sums."""
    size = 400
    exact = draws(case, 3, size, slack=1.0)
    assert (draws(case, 3, size) == exact).all()
    assert p_value(exact, law(*case)) > 1e-4


def test_groups_are_chosen_from_independently() -> None:
    groups = Candidates(
        np.zeros(4 * SIZE, dtype=np.int64), np.ones(4 * SIZE, dtype=np.int64), np.full(SIZE, 4)
    )
    found = choose(Entropy(), groups, Fraction(1))
    pairs = np.bincount(4 * found[:-1] + found[1:], minlength=16)
    assert stats.chisquare(pairs).pvalue > 1e-9


def _losses(span: int, scale: Fraction, *, monotone: bool) -> float:
    """The largest log-ratio over all small utilities and all that a unit may make of them."""
    worst = 0.0
    moves = range(span + 1) if monotone else range(-(span // 2), span // 2 + 1)
    for before in itertools.product(range(-2, 1), repeat=3):
        for change in itertools.product(moves, repeat=3):
            after = [b + c for b, c in zip(before, change, strict=True)]
            one = law(list(before), [1, 2, 5], scale)
            two = law(after, [1, 2, 5], scale)
            worst = max(worst, float(np.abs(np.log(one / two)).max()))
    return worst


@pytest.mark.parametrize("monotone", [True, False])
def test_no_neighbour_is_told_apart_by_more_than_epsilon(monotone: bool) -> None:
    """A span of 2: utilities that all rise by up to 2, or that move by 1 in either direction."""
    epsilon = Fraction(1, 2)
    worst = _losses(2, 2 / epsilon, monotone=monotone)
    assert 0.6 * epsilon < worst <= epsilon + 1e-12
    forgotten = _losses(2, 1 / epsilon, monotone=monotone)
    assert forgotten > epsilon
