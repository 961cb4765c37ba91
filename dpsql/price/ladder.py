"""The bounds among which a search chooses, and how much each counts before the data is asked."""

from __future__ import annotations

import math
from fractions import Fraction

SMALLEST = Fraction(1, 2**10)
"""The lowest bound on the worth of the rows of a unit, in rows of the largest value."""
STEPS = 8
"""The number of bounds from one power of two to the next.

A bound is then at most an eighth too high. The target grows with the logarithm of the number of
bounds, which is hardly larger.
"""
_PRIOR_BITS = 48
"""The lowest rung counts as ``2**_PRIOR_BITS``, so that all of them together fit into 64 bits."""


def ladder(most: int) -> tuple[Fraction, ...]:
    """Bounds on numbers to choose from; ``most`` is the highest.

    >>> print(*ladder(20))
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 18 20
    """
    return tuple(rung for rung in fine_ladder(Fraction(most)) if rung.denominator == 1)


def fine_ladder(most: Fraction, least: Fraction = SMALLEST) -> tuple[Fraction, ...]:
    """Bounds on the worth of rows, which begin at a small part of one row, and on Euclidean norms.

    >>> [float(rung) for rung in fine_ladder(Fraction(1))[-4:]]
    [0.8125, 0.875, 0.9375, 1.0]
    """
    rungs, power = set[Fraction](), SMALLEST
    while power < most:
        rungs |= {power * (STEPS + i) / STEPS for i in range(STEPS)}
        power *= 2
    return (*sorted(r for r in rungs if least <= r < most), most)


def prior(rungs: tuple[Fraction, ...]) -> tuple[int, ...]:
    """How much each rung counts before the data is asked: as ``t**-1.5``, in whole numbers.

    >>> prior((Fraction(1), Fraction(4), Fraction(16)))
    (281474976710656, 35184372088832, 4398046511104)
    """
    steepest = 1 << 2 * _PRIOR_BITS
    return tuple(max(1, math.isqrt(int(steepest * (rungs[0] / rung) ** 3))) for rung in rungs)
