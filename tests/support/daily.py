"""What is tried in part by day, and in whole every night: ``make nightly``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
Item = TypeVar("Item")


def some(items: Sequence[Item], turn: int, of: int) -> Sequence[Item]:
    """By day each ``of``-th item, of which ``turn`` says where to begin; all of them at night.

    Callers that give each of their cases another turn try every item in some case.
    """
    return items if NIGHTLY else items[turn % of :: of]
