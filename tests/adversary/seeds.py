"""Attacks as JSON: what is kept because it reached something new, and what was found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from tests.adversary.model import Relation, Role, Row, Step, World

FOLDER = Path(__file__).parents[2] / "fixtures" / "adversary"
MOST = 80
"""Seeds that are kept: more take longer than what they find is worth."""


@dataclass(frozen=True, slots=True)
class Seed:
    """An attack that can be repeated, and why it is kept."""

    world: World
    relation: Relation
    owners: tuple[str, ...]
    steps: tuple[Step, ...]
    reached: tuple[str, ...] = ()


def to_json(seed: Seed) -> str:
    """One object, with a line for each row and each step."""
    world = seed.world
    rows, earlier = (
        [[r.table, r.owner, *r.cells] for r in kept] for kept in (world.rows, world.earlier)
    )
    document: dict[str, Any] = {
        "name": world.name,
        "policy": world.policy.splitlines(),
        "ddl": world.ddl,
        "views": world.views,
        "roles": [[r.name, r.password] for r in world.roles],
        "group_size": world.group_size,
        "sound": world.sound,
        "prepared": world.prepared,
        "readings": world.readings,
        "relation": seed.relation,
        "owners": seed.owners,
        "reached": seed.reached,
    }
    head = json.dumps(document, indent=1)[:-2]
    steps = [[s.act, s.text, list(s.parameters), s.role, s.seconds] for s in seed.steps]
    parts = [
        f' "{name}": [\n  ' + ",\n  ".join(map(json.dumps, lines)) + "\n ]"
        for name, lines in (("steps", steps), ("rows", rows), ("earlier", earlier))
        if lines or name != "earlier"
    ]
    return head + ",\n" + ",\n".join(parts) + "\n}\n"


def from_json(text: str) -> Seed:
    """The attack in a file."""
    d = json.loads(text)
    world = World(
        d["name"], "\n".join(d["policy"]) + "\n", tuple(d["ddl"]),
        _rows(d["rows"]), tuple(Role(*role) for role in d["roles"]), tuple(d["views"]),
        d["group_size"], d["sound"], d.get("prepared", False), _rows(d.get("earlier", [])),
        tuple((view, other) for view, other in d.get("readings", [])),
    )  # fmt: skip
    steps = tuple(Step(a, t, tuple(p), r, s) for a, t, p, r, s in d["steps"])
    relation = cast(Relation, d["relation"])
    return Seed(world, relation, tuple(d["owners"]), steps, tuple(d["reached"]))


def _rows(lines: list[list[Any]]) -> tuple[Row, ...]:
    return tuple(Row(table, tuple(cells), owner) for table, owner, *cells in lines)


def load(*folders: Path) -> Iterator[Seed]:
    """All seeds of some folders, in the order of their names."""
    for folder in folders:
        for path in sorted(folder.glob("*.json")):
            yield from_json(path.read_text(encoding="utf-8"))


def small(seed: Seed, units: int = 5) -> Seed:
    """The same with fewer units: those that the pair differs by, and the first of the others."""
    kept = {*seed.owners, *seed.world.owners[:units], None}
    rows, earlier = (
        tuple(row for row in some if row.owner in kept)
        for some in (seed.world.rows, seed.world.earlier)
    )
    world = replace(seed.world, rows=rows, earlier=earlier)
    return Seed(world, seed.relation, seed.owners, seed.steps, seed.reached)
