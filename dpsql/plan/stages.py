"""Pieces that the statements of a measurement share: rows with their unit and keys, and weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dpsql.plan.bounding import Bounding
from dpsql.plan.grid import Grid
from dpsql.plan.looked_up import looked_up
from dpsql.plan.nodes import Measurement
from dpsql.plan.prepared import Reading, stepped
from dpsql.plan.steady import steady
from dpsql.plan.ties import break_ties
from dpsql.policy.companion import Steps
from dpsql.sql.blocks import Block, Writer
from dpsql.sql.expressions import Expression
from dpsql.sql.relations import Relation
from dpsql.sql.render import expression, key_text

SALT = "salt"
"""A parameter: a random number drawn for each run; group sampling depends on it and the unit's rows only."""

Sizes = Sequence[tuple[str, int]]
"""Measures of a unit, as they are written over its rows, each with its limit."""


@dataclass(frozen=True, slots=True)
class Source:
    """The rows of a measurement: a block, and how unit and keys are written over it.

    ``steady`` rows are the same wherever they are read in one statement.
    ``stepped`` has the columns that a copy holds in steps, by how they are written. Under
    ``strict`` timing the block has other rows too, which do not count: those where ``kept`` does
    not hold (None: there are no others). ``shared`` rows are read from where the statement has
    written them down.
    """

    relation: Relation
    block: Block
    units: tuple[str, ...]
    keys: tuple[str, ...]
    steady: bool
    stepped: Mapping[str, tuple[str, Steps]] = field(default_factory=dict)
    strict: bool = False
    kept: str | None = None
    shared: bool = False

    def steps(self, text: str, grid: Grid) -> str | None:
        """What holds the values of ``text`` clamped on this very grid, before its centre is off."""
        held, steps = self.stepped.get(text, ("", None))
        if steps is None or (steps.shift, steps.low, steps.high) != (
            grid.shift,
            grid.low,
            grid.high,
        ):
            return None
        return held

    def where(self, condition: Expression | None) -> str | None:
        """The rows that count among those of a condition."""
        if condition is None:
            return self.kept
        text = expression(condition, self.block.items)
        return text if self.kept is None else f"({text} AND {self.kept})"

    def counting(self, kept: str | None = "kept") -> str:
        """How rows are counted: those that count."""
        return "count(*)" if self.kept is None else f"count(*) FILTER (WHERE {kept or self.kept})"


def source(measurement: Measurement, bounding: Bounding, reading: Reading | None) -> Source:
    """The rows that a measurement is of, read from prepared copies where there are some."""
    lifted = measurement.lifted
    relation = measurement.input if reading is None else reading.relation
    if lifted is not None:
        relation = lifted.input
    if bounding.ranked:
        assert reading is not None
        assert bounding.rows is not None
        relation = reading.limited(int(bounding.rows))
    if lifted is None:
        relation = looked_up(relation)
    relation = break_ties(relation, measurement)
    block = Writer().open(relation)
    kept = None if lifted is None or lifted.kept is None else block.items[lifted.kept.number]
    units = tuple(block.items[min(c & block.items.keys())] for c in measurement.privacy.key)
    keys = tuple(key_text(k, block.items) for k in measurement.keys)
    held = stepped(relation, block.items)
    known = steady(measurement.input)
    return Source(relation, block, units, keys, known, held, lifted is not None, kept)


def owned(measurement: Measurement, relation: Relation) -> Source:
    """Rows with their units, read as they are stored."""
    block = Writer().open(break_ties(looked_up(relation), measurement))
    units = tuple(block.items[min(c & block.items.keys())] for c in measurement.privacy.key)
    keys = tuple(key_text(k, block.items) for k in measurement.keys)
    return Source(relation, block, units, keys, steady(relation))


def ownerless(measurement: Measurement, relation: Relation) -> Source:
    """Rows whose units need not be known."""
    relation = break_ties(looked_up(relation), measurement)
    block = Writer().open(relation)
    keys = tuple(key_text(k, block.items) for k in measurement.keys)
    return Source(relation, block, (), keys, True, stepped(relation, block.items))


def weights(bounding: Bounding, rows: Source, sizes: Sizes = ()) -> str:
    """Units with more rows than the limit, and what each of their rows weighs.

    ``sizes`` are other measures of a unit, each a whole number with its limit; a row then weighs
    what is right for that which is farthest above its limit.

    Under strict timing these are all units: a join with few of them would be over sooner.
    """
    assert bounding.rows is not None
    items = ", ".join(named("u", rows.units))
    number, by = rows.counting(None), group_by(len(rows.units))
    most, one = f"({bounding.rows}::BIGINT << {bounding.bits})", 1 << bounding.bits
    if bounding.valued:
        parts = ", ".join(f"{limit * one} // greatest({size}, 1)" for size, limit in sizes)
        weight = f"CAST(least({one}, {parts}) AS BIGINT) AS weight"
        above = " OR ".join(f"{size} > {limit}" for size, limit in sizes)
        present = "" if rows.strict else f" HAVING {above}"
        return f"SELECT {items}, {weight}{rows.block.tail()}{by}{present}"
    if rows.strict:
        weight = f"least({one}, {most} // greatest({number}, 1)) AS weight"
        return f"SELECT {items}, {weight}{rows.block.tail()}{by}"
    weight = f"{most} // {number} AS weight"
    return f"SELECT {items}, {weight}{rows.block.tail()}{by} HAVING {number} > {bounding.rows}"


def above(limit: int, rows: Source) -> str:
    """Units with more rows than a limit."""
    items = ", ".join(named("u", rows.units))
    by = group_by(len(rows.units))
    return f"SELECT {items}{rows.block.tail()}{by} HAVING count(*) > {limit}"


def salted(
    units: tuple[str, ...], keys: tuple[str, ...], values: tuple[str, ...] = (), last: str = ""
) -> str:
    """An order of each unit's groups that only the salt and the unit's own rows decide.

    Those that do not count, where ``last`` holds, come last.

    Claim: no two rows of a unit that differ in a key or a value have the same place.
    Argument: keys and values are the last terms of the order, whatever the hashes are.
    """
    parts = (draw(units, keys, values), listed("k", keys), listed("v", values))
    order = ", ".join(filter(None, (last, *parts)))
    return f"PARTITION BY {listed('u', units)} ORDER BY {order}"


def draw(units: tuple[str, ...], keys: tuple[str, ...], values: tuple[str, ...] = ()) -> str:
    """A hash of unit, keys, values and salt.

    Claim: different units, keys, values or salts are different arguments, also to a hash that skips
        NULL: (NULL, 1) and (1, NULL) are read as (true, false, 1) and (false, 1, true).
    Argument: before each part stands whether it is NULL, which says whether a value follows.
    """
    listing = (listed("u", units), listed("k", keys), listed("v", values))
    names = ", ".join(filter(None, listing)).split(", ")
    tagged = ", ".join(f"{name} IS NULL, {name}" for name in names)
    return f"hash({tagged}, ${SALT})"


def named(letter: str, texts: tuple[str, ...]) -> list[str]:
    """Texts under numbered names, as a SELECT list gives them."""
    return [f"{text} AS {letter}{i}" for i, text in enumerate(texts)]


def listed(letter: str, texts: tuple[str, ...]) -> str:
    """The numbered names."""
    return ", ".join(f"{letter}{i}" for i in range(len(texts)))


def group_by(count: int) -> str:
    """GROUP BY the first ``count`` items; nothing for none."""
    return f" GROUP BY {', '.join(str(i + 1) for i in range(count))}" if count else ""
