"""Limits on what a unit adds that a search has found: see ``price.search``."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Amount = Literal["units", "rows", "worth"]
"""What is limited over all groups of a unit: its groups, its rows, or what its values add up to.

Values count in units of the most that one row adds.
"""
Norm = Literal[1, 2]
"""Which norm is limited: the sum of absolute values (1), or the Euclidean norm (2)."""


@dataclass(frozen=True, slots=True)
class FoundLimits:
    """Limits by what they limit and in which norm; the rest keeps the limits of the policy."""

    limits: tuple[tuple[Amount, Norm, Fraction], ...]

    def get(self, amount: Amount, norm: Norm) -> Fraction | None:
        """The limit; None if there was no search for it.

        >>> FoundLimits((("rows", 1, Fraction(7)),)).get("rows", 1)
        Fraction(7, 1)
        """
        return next((f for a, n, f in self.limits if (a, n) == (amount, norm)), None)
