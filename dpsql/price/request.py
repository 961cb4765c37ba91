"""What a session asks of one query's answer, and what it may have."""

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

    ``allowed`` are the mechanisms of the role; ``groups`` its limit on groups of one unit;
    ``sizes`` how many units of a kind count as one (a household) where that is not 1;
    ``shelf`` the prepared copies that may be read.
    ``bounding`` names the strategy that is used wherever it is among the candidates: for audits of
    what would not be chosen. All candidates keep the claim, so it takes nothing from anyone.
    ``search`` says that bounds may be searched for; ``found`` has the most rows of a unit that count
    (or what they may be worth), by the name of the measurement, as a search found them
    (``price.search``). ``consistent`` asks for levels that add up.
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
