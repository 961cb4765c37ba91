"""Exact Bernoulli trials with a real probability p: a uniform is compared with p bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpsql.privacy.enclosure import Enclosure
from dpsql.privacy.entropy import Randomness

FIRST_BITS = 32
MORE_BITS = 64
COIN_SLACK = 2.0**-30
FLOOR = 2.0**-62

Bounds = Callable[[int], tuple[int, int]]
"""Maps a number of bits k to integers with ``low < p * 2**k < high``."""


class Probability:
    """An irrational number p strictly between 0 and 1, of which any binary digit can be computed.

    Claim: ``digits(k)`` is floor(p * 2**k), and ``beats`` is true with probability exactly p when
        its head was drawn uniformly.
    Assumes: the bounds are strict and converge to p; p is irrational (each constructor below is a
        rational function of exp(-x) at a rational x other than 0, which is transcendental).
    Argument: low < p * 2**w < high decides the floor as soon as low and high - 1 agree after the
        guard bits are dropped, and irrationality makes them agree eventually. U < p is decided by
        the first digit in which U and p differ.

    >>> p = exp_minus(Fraction(1))
    >>> p.digits(32), int(2**32 / 2.718281828459045)
    (1580030168, 1580030168)
    """

    def __init__(self, bounds: Bounds) -> None:
        """``bounds`` is called with more bits until the next digit is decided."""
        self._bounds = bounds
        self._known: dict[int, int] = {}

    def digits(self, k: int) -> int:
        """The first ``k`` binary digits, as an integer."""
        if k not in self._known:
            guard = 32
            while True:
                low, high = self._bounds(k + guard)
                first, last = low >> guard, (high - 1) >> guard
                if first == last:
                    break
                guard *= 2
            self._known[k] = first
        return self._known[k]

    def beats(self, entropy: Randomness, head: int, known: int) -> bool:
        """Whether a uniform U whose first ``known`` bits are ``head`` is below p."""
        while (digits := self.digits(known)) == head:
            head = head << MORE_BITS | entropy.bits(MORE_BITS)
            known += MORE_BITS
        return head < digits

    def toss(self, entropy: Randomness) -> bool:
        """True with probability exactly p."""
        return self.beats(entropy, entropy.bits(FIRST_BITS), FIRST_BITS)


def exp_minus(x: Fraction) -> Probability:
    """The probability exp(-x), for x > 0."""
    return Probability(lambda bits: exp_minus_bounds(x, bits))


def logistic_minus(x: Fraction) -> Probability:
    """The probability 1 / (1 + exp(x)), for x > 0.

    >>> logistic_minus(Fraction(1)).digits(20) / 2**20
    0.26894092559814453
    """

    def bounds(bits: int) -> tuple[int, int]:
        low, high = exp_minus_bounds(x, bits)
        one = 1 << bits  # q / (1 + q) grows with q
        return (low << bits) // (one + low), -((-high << bits) // (one + high))

    return Probability(bounds)


def tanh_half(x: Fraction) -> Probability:
    """The probability tanh(x / 2), for x > 0.

    >>> tanh_half(Fraction(1)).digits(20) / 2**20
    0.4621162414550781
    """

    def bounds(bits: int) -> tuple[int, int]:
        low, high = exp_minus_bounds(x, bits)
        one = 1 << bits  # (1 - q) / (1 + q) falls with q
        return (one - high << bits) // (one + high), -((low - one << bits) // (one + low))

    return Probability(bounds)


def below(
    entropy: Randomness,
    words: npt.NDArray[np.uint32],
    heads: npt.NDArray[np.uint32],
    probabilities: list[Probability],
) -> npt.NDArray[np.bool_]:
    """Toss ``probabilities`` in turn, column by column; ``heads`` are their first 32 binary digits.

    Claim: each toss is exact.
    Assumes: the words are uniform and independent.
    Argument: a word is the first 32 bits of a uniform number. A word that differs from the head
        decides as the whole number would. A word that equals it is decided by further digits.

    >>> words = np.array([[0, 2**31, 2**32 - 1]], dtype=np.uint32)
    >>> coin = exp_minus(Fraction(1))
    >>> heads = np.full(3, coin.digits(32), dtype=np.uint32)
    >>> from dpsql.privacy.entropy import Entropy
    >>> below(Entropy(), words, heads, [coin]).astype(int).tolist()
    [[1, 0, 0]]
    """
    result: npt.NDArray[np.bool_] = words < heads
    equal = words == heads
    if equal.any():
        for row, column in zip(*np.nonzero(equal), strict=True):
            word = int(words[row, column])
            probability = probabilities[column % len(probabilities)]
            result[row, column] = probability.beats(entropy, word, FIRST_BITS)
    return result


def keep_with_exp(
    entropy: Randomness,
    values: npt.NDArray[np.int64],
    near: npt.NDArray[np.float64],
    exact: Callable[[int], Fraction],
    slack: float = COIN_SLACK,
) -> npt.NDArray[np.bool_]:
    """For each value, toss a coin with probability exp(-exact(value)).

    Claim: each toss is exact, although most are decided in floating point.
    Assumes: ``near`` is within 2**-40 of ``exact`` wherever either is below 50, and above 49
        wherever ``exact`` is above 50; ``np.exp`` errs by less than 2**-40 of its value.
    Argument: the float p is then within p * 2**-38 + 2**-70 of the true probability, and the float
        u within u * 2**-53 + 2**-64 of the uniform. The margins ``COIN_SLACK`` and ``FLOOR`` are
        2**8 times wider, so a toss outside them is decided as in exact arithmetic. A toss inside
        them is decided by exact digits of the same uniform.

    >>> from dpsql.privacy.entropy import Entropy
    >>> xs = np.array([0, 10**6])
    >>> keep_with_exp(Entropy(), xs, xs.astype(float), Fraction).astype(int).tolist()
    [1, 0]
    """
    heads = entropy.u64(len(values))
    uniform = heads.astype(np.float64) * 2.0**-64
    chance = np.exp(-near)
    kept: npt.NDArray[np.bool_] = uniform < chance * (1 - slack) - FLOOR
    close = ~kept & (uniform <= chance * (1 + slack) + FLOOR)
    for i in np.flatnonzero(close):
        exponent = exact(int(values[i]))
        kept[i] = exponent == 0 or exp_minus(exponent).beats(entropy, int(heads[i]), 64)
    return kept


def exp_minus_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers below and above exp(-x) * 2**bits. The work depends on ``bits``, not on x."""
    if x >= bits:
        return 0, 1  # exp(-x) < 2**-bits
    q = Enclosure.of(-x, bits // 3 + 10).exp()
    low, high = q.low.as_integer_ratio(), q.high.as_integer_ratio()
    return (low[0] << bits) // low[1], -((-high[0] << bits) // high[1])
