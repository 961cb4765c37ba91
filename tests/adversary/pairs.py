"""Neighbours: which world is held against which."""

from __future__ import annotations

from dataclasses import replace

from tests.adversary.dice import Dice
from tests.adversary.model import Relation, Row, World
from tests.adversary.worlds import Ground

Rows = tuple[Row, ...]


def other(world: World, relation: Relation, owners: tuple[str, ...]) -> World:
    """The second world of a pair. What lay in its place earlier differs in the same way."""
    rows, earlier = (_other(kept, relation, owners) for kept in (world.rows, world.earlier))
    return replace(world, rows=rows, earlier=earlier)


def _other(rows: Rows, relation: Relation, owners: tuple[str, ...]) -> Rows:
    if relation == "without":
        return tuple(r for r in rows if r.owner not in owners)
    private = {row.table for row in rows if row.owner is not None}
    if relation == "order":  # that of public rows may be seen
        mixed = Dice("order").mixed([r for r in rows if r.table in private])
        return (*mixed, *(r for r in rows if r.table not in private))
    if relation == "strays":
        return tuple(r for r in rows if r.owner is not None or r.table not in private)
    return rows


def choose(ground: Ground, dice: Dice) -> tuple[Relation, tuple[str, ...]]:
    """How the second world shall differ: mostly by the victim, and whoever is protected with it."""
    world = ground.world
    thrown = dice.number(100)
    private = {row.table for row in world.rows if row.owner is not None}
    if thrown < 12 and not world.readings:  # sums of doubles follow the order of rows
        return "order", ()
    if thrown < 20 and any(r.owner is None and r.table in private for r in world.rows):
        return "strays", ()
    unit = ground.victim.partition(":")[0]
    others = [o for o in world.owners if o != ground.victim and o.partition(":")[0] == unit]
    if thrown < 32 and len(others) >= world.group_size:
        return "without", tuple(dice.mixed(others)[: world.group_size])
    return "without", (ground.victim, *dice.mixed(others)[: world.group_size - 1])
