from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from noise_streams import Recorded, Seeded

from dpsql.privacy.bernoulli import (
    Probability,
    below,
    exp_minus,
    keep_with_exp,
    logistic_minus,
    tanh_half,
)

mp = mpmath.mp.clone()
mp.prec = 600
RATES = [
    Fraction(1, 2**41), Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(22, 7),
    Fraction(40), Fraction(300),
]  # fmt: skip


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("k", [1, 32, 64, 96, 400])
def test_digits_are_those_of_the_number(rate: Fraction, k: int) -> None:
    x = mp.mpf(rate.numerator) / rate.denominator
    for ours, truth in (
        (exp_minus, mp.exp(-x)),
        (logistic_minus, 1 / (1 + mp.exp(x))),
        (tanh_half, mp.tanh(x / 2)),
    ):
        assert ours(rate).digits(k) == int(mp.floor(truth * 2**k))


def test_hopeless_and_certain_coins_are_cheap() -> None:
    x = Fraction(10**30)
    assert exp_minus(x).digits(4096) == 0
    assert logistic_minus(x).digits(64) == 0
    assert tanh_half(x).digits(64) == 2**64 - 1


def test_guard_bits_grow_until_the_digits_are_decided() -> None:
    asked: list[int] = []
    truth = (1 << 200) // 3

    def bounds(bits: int) -> tuple[int, int]:
        asked.append(bits)
        wide = 1 << max(0, 60 - len(asked) * 20)
        return (truth >> (200 - bits)) - wide, (truth >> (200 - bits)) + wide

    assert Probability(bounds).digits(8) == 85
    assert asked == [40, 72]


def test_a_tie_is_settled_by_the_digits_that_follow() -> None:
    p = exp_minus(Fraction(1))
    head, more = p.digits(32), p.digits(96) & (2**64 - 1)
    for nudge, outcome in ((-1, True), (1, False)):
        stream = Recorded((more + nudge).to_bytes(8, "little"))
        assert p.beats(stream, head, 32) is outcome
        assert stream.used == 8
    stream = Recorded(more.to_bytes(8, "little"))  # ties again; then zeros, which are below
    assert p.beats(stream, head, 32)
    assert stream.used == 16


def test_a_tie_in_an_array_goes_to_its_own_probability() -> None:
    coins = [exp_minus(Fraction(1)), exp_minus(Fraction(2))]
    heads = np.array([coin.digits(32) for coin in coins] * 2, dtype=np.uint32)
    words = np.array([[heads[0] - 1, heads[1] + 1, heads[2], heads[3]]], dtype=np.uint32)
    low, high = (2**64 - 1).to_bytes(8, "little"), bytes(8)
    assert below(Recorded(low + high), words, heads, coins).tolist() == [[True, False, False, True]]
    assert below(Recorded(high + low), words, heads, coins).tolist() == [[True, False, True, False]]


def test_tosses_have_their_probability() -> None:
    coin, stream = exp_minus(Fraction(1, 2)), Seeded(1)
    hits = sum(coin.toss(stream) for _ in range(20_000))
    assert abs(hits - 20_000 * 0.60653) < 6 * 70


@pytest.mark.parametrize("slack", [2.0**-30, 0.3, 1.0])
def test_exact_and_quick_decisions_agree(slack: float) -> None:
    """The same uniforms decide the same way, however many of them are settled exactly."""
    values = np.tile(np.arange(-4, 12, dtype=np.int64), 100)
    near = np.maximum(0, values) / 3.0

    def exact(value: int) -> Fraction:
        return Fraction(max(0, value), 3)

    kept = keep_with_exp(Seeded(5), values, near, exact, slack)
    uniform = Seeded(5).u64(len(values)).astype(np.float64) * 2.0**-64
    assert (kept == (uniform < np.exp(-near))).all()


def test_margins_of_the_quick_decision_are_settled_exactly() -> None:
    p = exp_minus(Fraction(1))
    asked: list[int] = []

    def exact(value: int) -> Fraction:
        asked.append(value)
        return Fraction(value)

    def word(offset: int) -> bytes:
        return (p.digits(64) + offset).to_bytes(8, "little")

    stream = Recorded(word(-1) + word(1) + word(-(2**40)) + word(2**40))
    ones = np.ones(4, dtype=np.int64)
    assert keep_with_exp(stream, ones, ones * 1.0, exact).tolist() == [True, False, True, False]
    assert asked == [1, 1]


def test_floats_as_far_off_as_they_may_be_decide_nothing() -> None:
    """Exponents err by 2**-40: a quick toss would be wrong by a millionth of a millionth, and is settled exactly."""
    p, ones = exp_minus(Fraction(1)).digits(64), np.ones(2, dtype=np.int64)
    words = b"".join((p + offset).to_bytes(8, "little") for offset in (-(2**22), 2**22))
    near = np.array([1 + 2.0**-40, 1 - 2.0**-40])
    uniform = Recorded(words).u64(2) * 2.0**-64
    assert (uniform < np.exp(-near)).tolist() == [False, True]
    assert keep_with_exp(Recorded(words), ones, near, Fraction).tolist() == [True, False]


def test_a_chance_far_below_all_floats_is_settled_exactly() -> None:
    """An exponent above 50 is only known to be above 49: no float says how often a uniform of zeros is below."""
    ones, near = np.ones(1, dtype=np.int64), np.array([49.5])
    for further, kept in ((b"\xff", False), (b"\x00", True)):
        stream = Recorded(bytes(8) + further * 64)
        assert keep_with_exp(stream, ones, near, lambda _: Fraction(60)).tolist() == [kept]
