"""What a session asks of one query's answer, and what it may have."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Mechanism = Literal["auto", "laplace", "geometric", "gaussian"]


@dataclass(frozen=True, slots=True)
class Request:
    """The privacy of one query: ``epsilon`` and ``delta`` for a unit, and how to spend them.

    ``allowed`` are the mechanisms of the role; ``groups`` its limit on groups of one unit;
    ``size`` the number of units that count as one (a household).
    """

    epsilon: Fraction
    delta: Fraction
    mechanism: Mechanism = "auto"
    allowed: tuple[str, ...] = ("laplace", "geometric", "gaussian")
    groups: int = 3
    size: int = 1
