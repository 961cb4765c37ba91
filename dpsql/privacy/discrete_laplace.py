"""The discrete Laplace law P(x) ~ exp(-|x| / scale) on the integers, exactly."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpsql.privacy.bernoulli import FIRST_BITS, below, tanh_half
from dpsql.privacy.entropy import Randomness
from dpsql.privacy.geometric import GeometricTable, geometric_table, sample_geometric

LARGEST_SCALE = 1 << 40
CHUNK = 1 << 13
"""The number of draws made at once, so that they fit into the processor's cache."""
_WORDS = 3 << 15


class _Table:
    """Precomputed values for one scale: the probability of zero and the law of other magnitudes."""

    def __init__(self, scale: Fraction) -> None:
        self.zero = tanh_half(1 / scale)
        self.zero_head = np.array([self.zero.digits(FIRST_BITS)], dtype=np.uint32)
        self.geometric: GeometricTable = geometric_table(1 / scale)
        self.chunk = min(CHUNK, _WORDS // (self.geometric.width + 1))


_table = lru_cache(maxsize=256)(_Table)


def check_scale(scale: Fraction) -> None:
    """Refuse a scale outside (0, 2**40].

    >>> check_scale(Fraction(0))
    Traceback (most recent call last):
    ...
    ValueError: the scale of noise must be above 0 and at most 2**40, not 0
    """
    if not 0 < scale <= LARGEST_SCALE:
        raise ValueError(f"the scale of noise must be above 0 and at most 2**40, not {scale}")


def sample_discrete_laplace(entropy: Randomness, n: int, scale: Fraction) -> npt.NDArray[np.int64]:
    """Draw ``n`` independent numbers with P(x) proportional to exp(-|x| / scale).

    Claim: the law is exact; no floating point is involved. The work for a number is fixed: there
        is no rejection. (A magnitude above 2**62 raises OverflowError: see ``sample_geometric``.)
    Assumes: ``entropy`` gives independent fair bits.
    Argument: with q = exp(-1/scale), P(0) = (1 - q) / (1 + q) = tanh(1 / (2 scale)). Given that the
        number is not 0, its sign is fair and its magnitude minus one is geometric with ratio q.

    >>> from dpsql.privacy.entropy import Entropy
    >>> int(abs(sample_discrete_laplace(Entropy(), 1000, Fraction(1, 10**9))).max())
    0
    """
    check_scale(scale)
    return draw(entropy, n, scale)


def draw(entropy: Randomness, n: int, scale: Fraction) -> npt.NDArray[np.int64]:
    """Draw as ``sample_discrete_laplace`` does, for a scale that was checked before."""
    table = _table(scale)
    result = np.empty(n, dtype=np.int64)
    for start in range(0, n, table.chunk):
        size = min(table.chunk, n - start)
        magnitude = sample_geometric(entropy, size, table.geometric) + 1
        zero = below(entropy, entropy.u32((size, 1)), table.zero_head, [table.zero])[:, 0]
        sign = (np.frombuffer(entropy.raw(size), dtype=np.int8) & 1) * np.int64(2) - 1
        result[start : start + size] = magnitude * sign * ~zero
    return result
