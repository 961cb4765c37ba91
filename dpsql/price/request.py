"""The privacy parameters that a session asks for in one query, and the limits of its role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from dpsql.policy.prepared_copies import PreparedCopies

Mechanism = Literal["auto", "laplace", "geometric", "gaussian"]


@dataclass(frozen=True, slots=True)
class Request:
    """The privacy of one query: ``epsilon`` and ``delta`` for a unit, and how to spend them.

    ``allowed`` are the mechanisms of the role, and ``groups`` is its limit on groups of one unit.
    ``sizes`` gives, by the name of the unit, how many units count as one (a household), where that
    is not 1. ``shelf`` has the prepared copies that may be read.

    ``bounding`` names a strategy that is used wherever it is among the candidates, so that audits
    can run strategies that would not be chosen. All candidates keep the claim, so this lowers no
    one's privacy.

    ``search`` allows searches for bounds (``price.search``). ``found`` has their results by the
    name of the measurement: the most rows of a unit that count, or the most that they may be worth.
    ``consistent`` asks for levels that add up.
    """

    epsilon: Fraction
    delta: Fraction
    mechanism: Mechanism = "auto"
    allowed: tuple[str, ...] = ("laplace", "geometric", "gaussian")
    groups: int = 3
    sizes: Mapping[str, int] = field(default_factory=dict)
    shelf: PreparedCopies = field(default_factory=PreparedCopies)
    bounding: str | None = None
    search: bool = False
    consistent: bool = False
    found: Mapping[str, Fraction] = field(default_factory=dict)

    def size(self, unit: str) -> int:
        """How many units of this kind are protected together."""
        return self.sizes.get(unit, 1)
