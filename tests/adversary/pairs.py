"""Neighbours: which world is held against which."""

from __future__ import annotations

from dataclasses import replace

from tests.adversary.dice import Dice
from tests.adversary.model import Relation, World
from tests.adversary.worlds import Ground


def other(world: World, relation: Relation, owners: tuple[str, ...]) -> World:
    """The second world of a pair."""
    if relation == "without":
        return replace(world, rows=tuple(r for r in world.rows if r.owner not in owners))
    private = {row.table for row in world.rows if row.owner is not None}
    if relation == "order":  # that of public rows may be seen
        mixed = Dice("order").mixed([r for r in world.rows if r.table in private])
        return replace(world, rows=(*mixed, *(r for r in world.rows if r.table not in private)))
    if relation == "strays":
        kept = (r for r in world.rows if r.owner is not None or r.table not in private)
        return replace(world, rows=tuple(kept))
    return world


def choose(ground: Ground, dice: Dice) -> tuple[Relation, tuple[str, ...]]:
    """How the second world shall differ: mostly by the victim, and whoever is protected with it."""
    world = ground.world
    thrown = dice.number(100)
    private = {row.table for row in world.rows if row.owner is not None}
    if thrown < 12:
        return "order", ()
    if thrown < 20 and any(r.owner is None and r.table in private for r in world.rows):
        return "strays", ()
    unit = ground.victim.partition(":")[0]
    others = [o for o in world.owners if o != ground.victim and o.partition(":")[0] == unit]
    if thrown < 32 and len(others) >= world.group_size:
        return "without", tuple(dice.mixed(others)[: world.group_size])
    return "without", (ground.victim, *dice.mixed(others)[: world.group_size - 1])
