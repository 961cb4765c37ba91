"""The geometric law P(G = k) = (1 - q) q**k with q = exp(-rate), drawn bit by bit."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpsql.privacy.bernoulli import FIRST_BITS, below, exp_minus, logistic_minus
from dpsql.privacy.entropy import Randomness

TAIL_RATE = 45
"""Bits are drawn one by one up to weight TAIL_RATE / rate; exp(-45) < 2**-64."""
LARGEST = 1 << 62
BLOCK = 64
"""Samples compared as one row, so that rows are long enough for vector instructions."""


class GeometricTable:
    """Precomputed values for one rate: the probability of each bit, and of a part above them."""

    def __init__(self, rate: Fraction, tail_rate: int = TAIL_RATE) -> None:
        """Tests lower ``tail_rate``, so that the part above the bits is drawn often."""
        width = 0
        while rate * (1 << width) < tail_rate:
            width += 1
        self.width = width
        self.bits = [logistic_minus(rate * (1 << i)) for i in range(width)]
        heads = np.array([p.digits(FIRST_BITS) for p in self.bits], dtype=np.uint32)
        self.heads = np.tile(heads, BLOCK)
        self.tail = exp_minus(rate * (1 << width))
        self.tail_head = np.uint64(self.tail.digits(64))


@lru_cache(maxsize=256)
def geometric_table(rate: Fraction) -> GeometricTable:
    """The table of a rate, cached."""
    return GeometricTable(rate)


def sample_geometric(entropy: Randomness, n: int, table: GeometricTable) -> npt.NDArray[np.int64]:
    """Draw ``n`` independent geometric numbers.

    Claim: the law is exactly geometric; no floating point is involved. A number of 2**62 or more
        raises OverflowError instead (for rates of 2**-41 or more its probability is below
        exp(-2**21), and it does not depend on any data).
    Assumes: ``entropy`` gives independent fair bits.
    Argument: with G = Q * 2**B + sum of b_i * 2**i, the weight q**G is a product of a factor for
        Q and one for each bit. So Q, b_0, ... are independent, P(b_i = 1) = 1 / (1 + exp(rate *
        2**i)) and Q is geometric with ratio exp(-rate * 2**B). Each is made of exact tosses.

    >>> from dpsql.privacy.entropy import Entropy
    >>> draws = sample_geometric(Entropy(), 10_000, geometric_table(Fraction(1)))
    >>> abs(draws.mean() - 1 / (2.718281828459045 - 1)) < 0.1
    np.True_
    """
    block, width = (BLOCK if n >= BLOCK else 1), table.width
    words = entropy.u32((-(-n // block), block * width))
    bits = below(entropy, words, table.heads[: block * width], table.bits)
    wide = np.zeros((n, 64), dtype=np.bool_)
    wide[:, :width] = bits.reshape(-1, width)[:n] if width else False
    result = np.packbits(wide.reshape(-1), bitorder="little").view("<i8")
    heads = entropy.u64(n)
    for i in np.flatnonzero(heads <= table.tail_head):
        if table.tail.beats(entropy, int(heads[i]), 64):
            high = 1
            while table.tail.toss(entropy):
                high += 1
                if high << width >= LARGEST:
                    raise OverflowError("a noise draw of 2**62 or more")
            result[i] += high << width
    return result
