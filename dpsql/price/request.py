"""The privacy parameters that a session asks for in one query, and the limits of its role."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from dpsql.bound.found_limits import FoundLimits
from dpsql.policy.model import Searching
from dpsql.policy.prepared_copies import PreparedCopies

Mechanism = Literal["auto", "laplace", "geometric", "gaussian"]


@dataclass(frozen=True, slots=True)
class Request:
    """The privacy of one query for a unit, and how to spend it.

    The answer is (``epsilon``, ``delta``)-DP, and its noise costs at most ``rho`` in zCDP. At least
    one of ``epsilon`` and ``rho`` is given, and each that is given holds.

    ``allowed`` are the mechanisms of the role, and ``groups`` is its limit on groups of one unit.
    ``sizes`` gives, by the name of the unit, how many units count as one (a household), where that
    is not 1. ``shelf`` has the prepared copies that may be read.

    ``bounding`` names a strategy that is used wherever it is among the candidates, so that audits
    can run strategies that would not be chosen. All candidates keep the claim, so this lowers no
    one's privacy.

    ``search`` allows searches for limits (``price.search``). ``found`` has their results by the
    name of the measurement. ``consistent`` asks for levels that add up.
    """

    epsilon: Fraction | None
    delta: Fraction
    mechanism: Mechanism = "auto"
    allowed: tuple[str, ...] = ("laplace", "geometric", "gaussian")
    groups: int = 3
    sizes: Mapping[str, int] = field(default_factory=dict)
    shelf: PreparedCopies = field(default_factory=PreparedCopies)
    bounding: str | None = None
    search: Searching = "off"
    consistent: bool = False
    found: Mapping[str, FoundLimits] = field(default_factory=dict)
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        """A request without a limit would have no noise."""
        if self.epsilon is None and self.rho is None:
            raise ValueError("a request states an epsilon, a rho, or both")

    def size(self, unit: str) -> int:
        """How many units of this kind are protected together."""
        return self.sizes.get(unit, 1)

    def part(self, share: Fraction) -> Request:
        """The request for a part of the budget. Parts that add up to 1 cost the whole together."""
        return replace(
            self,
            epsilon=None if self.epsilon is None else self.epsilon * share,
            delta=self.delta * share,
            rho=None if self.rho is None else self.rho * share,
        )

    @property
    def strength(self) -> Fraction:
        """The budget as one number: ``epsilon``, or the epsilon at which epsilon**2 / 2 is rho."""
        if self.rho is None:
            assert self.epsilon is not None
            return self.epsilon
        return Fraction(math.isqrt(int(2 * self.rho * _FINE**2)), _FINE)

    def at(self, strength: Fraction) -> Request:
        """The request at a smaller ``strength``; its other limit stays."""
        if self.rho is None:
            return replace(self, epsilon=strength)
        return replace(self, rho=min(self.rho, strength * strength / 2))


_FINE = 10**12
"""The strength of a rho is a multiple of 1 / ``_FINE``."""
