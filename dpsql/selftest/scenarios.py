"""Scenarios: the rows of one person in a cell, and the other people in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Value = Literal["top", "low", "middle", "above", "below", "unlisted"]
"""The greatest or least declared value, one in the middle, one beyond either end, or in each row
another one that is not declared."""
OWN_PART, OTHERS_PART = 1, 5


@dataclass(frozen=True, slots=True)
class Scenario:
    """A person who is in one database and missing in the other.

    With ``many``, the person has twice as many rows as declared; with ``spread``, they are in four
    groups of the cell. With ``apart``, the person is alone in a group of the cell. ``keyless`` rows
    have NULL as their key, so that they belong to one unit in all cells. With ``beside``, the cell
    is next to a cell without the person, and the difference of both cells is measured: noise that
    they share would cancel.
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
        """The part of the cell with the person's rows, None for four; others are in the last."""
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
"""For questions in two steps: whether the first passes decides about twelve others."""

MAIN = (TWICE, SPREAD, EMPTY, ABOVE, BELOW, KEYLESS)
"""The scenarios that reveal most faults."""
SCENARIOS = (TWICE, SPREAD, ALONE, EMPTY, ABOVE, BELOW, LOWEST, EDGE, KEYLESS, CROWD)
UNLISTED = Scenario("in each row another value that nobody lists", "unlisted", many=True)
"""For numbers of different values, which a list of declared values bounds only if it is enforced."""
BESIDE = Scenario("beside a cell without them", many=True, beside=True)
"""For one question of each law: whether noise is drawn for each group separately."""
ALL = (*SCENARIOS, UNLISTED, BESIDE)
