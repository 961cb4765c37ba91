"""Attacks whose answers must equal those of plain DuckDB: worlds that keep every declaration."""

from __future__ import annotations

from dataclasses import replace

from tests.adversary.dice import Dice
from tests.adversary.grammar import BEYOND, ORACLE
from tests.adversary.judges.oracle import FIRST, NAME
from tests.adversary.model import Step
from tests.adversary.seeds import Seed
from tests.adversary.statements import Writer
from tests.adversary.worlds import make

CUT = 40
"""Worlds in a hundred in which numbers are outside their ranges."""


def tame(name: str, steps: int) -> Seed:
    """A world in which nothing is cut but numbers, and statements that mean the same in DuckDB."""
    dice = Dice(f"asked {name}")
    beyond = dice.chance(CUT)
    ground = make(f"{NAME} {name}", tame=True, beyond=beyond, epsilon="10000000")
    writer = Writer(ground, dice, BEYOND if beyond else ORACLE)
    asked = tuple(Step("ask", writer.statement()) for _ in range(steps))
    world = replace(ground.world, name=f"{NAME}-{name}", group_size=1)
    return Seed(world, "same", (), (FIRST, *asked))
