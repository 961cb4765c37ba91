"""New attacks from old ones: steps are mixed, tokens of statements exchanged, values made worse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tests.adversary.dice import Dice
from tests.adversary.grammar import SETTINGS
from tests.adversary.judges.oracle import NAME
from tests.adversary.model import Row, Step
from tests.adversary.seeds import Seed

_TOKEN = re.compile(r"'(?:[^']|'')*'|\w+|\s+|.", re.DOTALL)
WORDS = (
    "NULL", "0", "-0.0", "1e308", "'NaN'", "DISTINCT", "NOT", "COUNT", "SUM", "MAX", "MIN", "AVG", "LEFT",
    "''", "ALL", "CAST", "OVER", "()", "GROUP BY", "HAVING", "*", "=", "<", "IS NULL", "OR", "AND",
)  # fmt: skip


def mutate(seed: Seed, others: Sequence[Seed], dice: Dice) -> Seed:
    """The attack with one to three changes."""
    for _ in range(dice.between(1, 3)):
        change = dice.one((_tokens, _tokens, _tokens, _setting, _again, _order, _values, _copies))
        seed = change(seed, dice)
        if change is _tokens and seed.world.name.startswith(
            NAME
        ):  # who knows what DuckDB makes of it
            seed = replace(seed, world=replace(seed.world, name=f"changed {seed.world.name}"))
    return replace(seed, reached=())


def _tokens(seed: Seed, dice: Dice) -> Seed:
    """Exchange, leave out or repeat a token of a statement."""
    at = dice.number(len(seed.steps))
    tokens = _TOKEN.findall(seed.steps[at].text)
    if not tokens:
        return seed
    place, kind = dice.number(len(tokens)), dice.number(4)
    if kind == 0:
        tokens[place] = dice.one(WORDS)
    elif kind == 1:
        del tokens[place]
    elif kind == 2:
        tokens[place] = dice.one(tokens)
    else:
        tokens.insert(place, f" {dice.one(WORDS)} ")
    step = replace(seed.steps[at], text="".join(tokens))
    return replace(seed, steps=(*seed.steps[:at], step, *seed.steps[at + 1 :]))


def _setting(seed: Seed, dice: Dice) -> Seed:
    at = dice.number(len(seed.steps))
    return replace(
        seed, steps=(*seed.steps[:at], Step("set", dice.one(SETTINGS)), *seed.steps[at:])
    )


def _again(seed: Seed, dice: Dice) -> Seed:
    return replace(seed, steps=(*seed.steps, dice.one(seed.steps)))


def _order(seed: Seed, dice: Dice) -> Seed:
    return replace(seed, world=replace(seed.world, rows=tuple(dice.mixed(seed.world.rows))))


def _copies(seed: Seed, _: Dice) -> Seed:
    """Prepare copies of the tables, or remove them."""
    return replace(seed, world=replace(seed.world, prepared=not seed.world.prepared))


def _values(seed: Seed, dice: Dice) -> Seed:
    """Give a unit's row the value of another, or none."""
    rows = list(seed.world.rows)
    if not rows:
        return seed
    at = dice.number(len(rows))
    row = rows[at]
    if row.owner is None or len(row.cells) < 3:
        return seed
    place = dice.between(2, len(row.cells) - 1)
    like = [r.cells[place] for r in rows if r.table == row.table]
    cells = list(row.cells)
    cells[place] = dice.one(like)
    rows[at] = Row(row.table, tuple(cells), row.owner)
    return replace(seed, world=replace(seed.world, rows=tuple(rows)))
