"""Costs of queries and spending of accounts as integers, the only numbers that a ledger stores."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsql.privacy.cost import Cost

NANO = 10**9
"""Epsilon and rho are counted in billionths."""
ATTO = 10**18
"""Deltas are counted in 1e-18."""
LARGEST = 2**63 - 1
"""The largest 64-bit integer, as a store keeps them; a larger sum is refused, never wrapped."""


def up(value: Fraction, unit: int) -> int:
    """``value`` in ``unit``-ths, rounded up, for spending."""
    return -((-value.numerator * unit) // value.denominator)


def down(value: Fraction, unit: int) -> int:
    """``value`` in ``unit``-ths, rounded down, for limits."""
    return (value.numerator * unit) // value.denominator


@dataclass(frozen=True, slots=True)
class Charge:
    """A cost, or a sum of costs: nano-epsilon, atto-delta, nano-rho, atto-threshold-delta.

    Every charge is rounded up, so a sum of charges is never below the sum of the costs.

    >>> Charge.of(Cost(Fraction(1, 3), Fraction(0), Fraction(1, 18), Fraction(0)))
    Charge(epsilon=333333334, delta=0, rho=55555556, threshold=0)
    """

    epsilon: int = 0
    delta: int = 0
    rho: int = 0
    threshold: int = 0

    @classmethod
    def of(cls, cost: Cost) -> Charge:
        """The charge for ``cost``. A negative cost is an error, since it would be a refund."""
        charge = cls(
            up(cost.epsilon, NANO),
            up(cost.delta, ATTO),
            up(cost.rho, NANO),
            up(cost.threshold_delta, ATTO),
        )
        if min(charge.numbers) < 0:
            raise ValueError("a cost is never negative")
        return charge

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """The four integers, in the order of the fields."""
        return self.epsilon, self.delta, self.rho, self.threshold

    @property
    def storable(self) -> bool:
        """Whether each number fits into the 64 bits of a store."""
        return max(self.numbers) <= LARGEST

    def __add__(self, other: Charge) -> Charge:
        """The sum of both charges."""
        return Charge(*(a + b for a, b in zip(self.numbers, other.numbers, strict=True)))

    def __sub__(self, other: Charge) -> Charge:
        """The difference; ``other`` must be part of this charge."""
        return Charge(*(a - b for a, b in zip(self.numbers, other.numbers, strict=True)))
