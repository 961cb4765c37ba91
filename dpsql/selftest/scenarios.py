"""Scenarios: what one person has in a cell, and who else is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Value = Literal["top", "low", "middle", "above", "below"]
"""The greatest or the least that is declared, one between, or what lies beyond either end."""
OWN_PART, OTHERS_PART = 1, 5


@dataclass(frozen=True, slots=True)
class Scenario:
    """The person is there in one database and missing in the other.

    ``many`` rows are twice what is declared, ``spread`` ones are in four groups of the cell. One
    that is ``apart`` has a group of the cell alone. ``keyless`` rows have NULL for a key, so that
    they belong to one unit in all cells. Where it is ``beside`` a cell without it, the
    difference of both cells is looked at: noise that they share would cancel.
    """

    name: str
    value: Value = "top"
    many: bool = False
    spread: bool = False
    apart: bool = False
    keyless: bool = False
    beside: bool = False
    others: int = 2
    theirs: Value = "middle"

    @property
    def part(self) -> int | None:
        """In which part of the cell the person's rows are, None for four; those of others are in the last."""
        if self.spread:
            return None
        return OWN_PART if self.apart or not self.others else OTHERS_PART


TWICE = Scenario("twice the rows allowed", many=True)
SPREAD = Scenario("in more groups than allowed", many=True, spread=True)
ALONE = Scenario("alone in a group", apart=True)
EMPTY = Scenario("one person, or empty tables", others=0)
ABOVE = Scenario("values above every bound", "above", many=True, spread=True)
BELOW = Scenario("values below every bound, and none", "below", many=True, spread=True)
LOWEST = Scenario("the lowest values", "low", many=True)
EDGE = Scenario("the end of a range tips over", "low", theirs="top")
KEYLESS = Scenario("rows without a key", many=True, keyless=True)
CROWD = Scenario("many others", many=True, others=12, theirs="low")
"""For what is asked in two steps: whether it passes decides about twelve others."""

MAIN = (TWICE, SPREAD, EMPTY, ABOVE, BELOW, KEYLESS)
"""Those in which most goes wrong that can."""
SCENARIOS = (TWICE, SPREAD, ALONE, EMPTY, ABOVE, BELOW, LOWEST, EDGE, KEYLESS, CROWD)
BESIDE = Scenario("beside a cell without them", many=True, beside=True)
"""For one question of each law: whether noise is drawn for each group by itself."""
ALL = (*SCENARIOS, BESIDE)
