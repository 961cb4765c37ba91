from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from dpsql.privacy.gaussian_tail import normal_tail, smallest_where, tail_bound

mp = mpmath.mp.clone()
mp.dps = 80


@pytest.mark.parametrize("m", [1, 2, 5, 15, 40, 90])
@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(50), Fraction(256), Fraction(257)])
def test_the_bound_is_never_below_the_tail(variance: Fraction, m: int) -> None:
    double = 2 * mp.mpf(variance.numerator) / variance.denominator
    weights = [mp.exp(-(mp.mpf(x) ** 2) / double) for x in range(m + 420)]
    truth = mp.fsum(weights[m:]) / (2 * mp.fsum(weights) - 1)
    bound = mp.mpf(str(tail_bound(variance, m).high))
    loose = mp.mpf(10) ** -20 if variance <= 256 else mp.mpf("0.02")
    assert truth <= bound <= truth * (1 + loose)


@pytest.mark.parametrize("y", [Fraction(1, 100), Fraction(1), Fraction(30), Fraction(150)])
def test_the_normal_tail_is_enclosed(y: Fraction) -> None:
    truth = mp.erfc(mp.sqrt(mp.mpf(y.numerator) / y.denominator)) / 2
    tail = normal_tail(y)
    assert mp.mpf(str(tail.low)) <= truth <= mp.mpf(str(tail.high))
    assert tail.high - tail.low <= tail.high / 10**25


@pytest.mark.parametrize("guess", [-5, 1, 999, 1000, 1001, 10**6])
@pytest.mark.parametrize("answer", [1, 2, 1000])
def test_the_search_finds_the_smallest_from_any_guess(answer: int, guess: int) -> None:
    assert smallest_where(lambda m: m >= answer, guess) == answer
