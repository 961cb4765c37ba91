"""Attacks whose answers must equal those of plain DuckDB: worlds that keep every declaration."""

from __future__ import annotations

from dataclasses import replace

from tests.adversary.dice import Dice
from tests.adversary.grammar import ORACLE
from tests.adversary.judges.oracle import NAME
from tests.adversary.model import Step
from tests.adversary.seeds import Seed
from tests.adversary.statements import Writer
from tests.adversary.worlds import make


def tame(name: str, steps: int) -> Seed:
    """A world in which nothing is cut, and statements that mean the same in DuckDB."""
    ground = make(f"{NAME} {name}", tame=True, epsilon="10000000")
    writer = Writer(ground, Dice(f"asked {name}"), ORACLE)
    asked = tuple(Step("ask", writer.statement()) for _ in range(steps))
    world = replace(ground.world, name=f"{NAME}-{name}", group_size=1)
    return Seed(world, "same", (), (Step("set", "SET dpsql.dialect = 'duckdb'"), *asked))
