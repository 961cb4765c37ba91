"""What the guard knows of a policy: listed columns, and whose rows a table holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from dpsql.engines.duckdb.guard.casts import cast
from dpsql.engines.duckdb.guard.facts import (
    DATE,
    DOUBLE,
    STORED,
    TEXT,
    TIME,
    TRUTH,
    WHOLE,
    End,
    Fact,
)
from dpsql.policy.model import Policy, Table
from dpsql.policy.prepared_copies import CATALOG, RANK, PreparedCopies, PreparedCopy
from dpsql.policy.types import Kind

_HELD = {
    "smallint": WHOLE, "integer": WHOLE, "bigint": WHOLE, "real": DOUBLE, "double": DOUBLE,
    "text": TEXT, "date": DATE, "timestamp": TIME, "boolean": TRUTH,
}  # fmt: skip
"""What stored columns of a type are; others are of that very type only."""
_EXACT = {
    Kind.BOOLEAN: Fact(TRUTH), Kind.INTEGER: Fact(WHOLE, bits=63), Kind.DOUBLE: Fact(DOUBLE),
    Kind.TEXT: Fact(TEXT), Kind.DATE: Fact(DATE), Kind.TIMESTAMP: Fact(TIME),
}  # fmt: skip
"""What is certain of a column whose type in the source is the one that a kind is read as."""
_MOST = 2**31 - 1


@dataclass(frozen=True)
class Listed:
    """A table: its columns, the kind of unit (None: public), and which columns are its key here.

    ``unit`` has a column for each part of the key; it is empty where the key is in a parent table,
    and for rows that are units of their own. ``parts`` is how many parts the key has. A prepared
    copy has ``whole`` columns too, of numbers that were bounded when it was made, with their ends.
    ``keys`` are the columns of keys that say whose a row is: the table's own, where rows of others
    lead there, and those of the row that it leads to itself.
    """

    columns: frozenset[str]
    kind: str | None = None
    unit: tuple[str, ...] = ()
    parts: int = 0
    whole: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    keys: frozenset[tuple[str, tuple[str, ...]]] = frozenset()
    held: Mapping[str, str] = field(default_factory=dict)
    identifiers: frozenset[str] = frozenset()
    strays: bool = False
    """Whether rows may have no unit: their key is NULL, or they lead to no row that has one."""
    ends: Mapping[str, tuple[End, End]] = field(default_factory=dict)
    """What was seen of stored columns: between which ends all their numbers are."""
    exact: Mapping[str, Fact] = field(default_factory=dict)
    """The type of columns that the engine's catalog says to have one of ``KINDS``."""

    @cached_property
    def facts(self) -> Mapping[str, Fact]:
        """What is certain of each column."""
        found = {name: Fact(STORED, held=self.held.get(name, "")) for name in self.columns}
        for part, column in enumerate(self.unit):
            held = self.held.get(column, "")
            found[column] = Fact(STORED, unit=frozenset({part}), held=held)
        for column, kind in self.exact.items():
            found[column] = cast(found[column], kind, given=False)
        for column, (low, high) in self.whole.items():
            found[column] = Fact(WHOLE, low, high, 31 if max(-low, high) <= _MOST else 63)
        for column, (least, most) in self.ends.items():
            found[column] = replace(found[column], low=least, high=most)
        for column in self.identifiers:
            found[column] = replace(found[column], shown=False)
        return found

    def read(self, number: int) -> Iterator[tuple[str, Fact]]:
        """The columns that are parts of keys, in the reading of the table with this number."""
        found: dict[str, set[tuple[str, int, int, int]]] = {}
        for table, columns in self.keys:
            for part, column in enumerate(columns):
                origin = (table, part, len(columns), number)
                found.setdefault(column, set()).add(origin)
        for column, origins in found.items():
            yield column, replace(self.facts[column], keys=frozenset(origins))


Place = tuple[str, str]
"""A schema or catalog (empty for the source) and the name of a table there."""


def list_tables(policy: Policy, shelf: PreparedCopies) -> Mapping[Place, Listed]:
    """The tables of a policy, and their copies, by the names that a statement may use."""
    tables = {("", name): _table(policy, table) for name, table in policy.tables.items()}
    for name, copy in shelf.copies.items():
        tables[CATALOG, name] = _copy(tables["", name], copy, _key_types(policy, name))
    return tables


def _key_types(policy: Policy, name: str) -> tuple[str, ...]:
    """What the parts of the unit's key are declared as, where the path of a table ends."""
    table = policy.tables[name]
    holder = policy.tables[table.path[-1].references] if table.path else table
    declared = [holder.columns[column].declared for column in table.unit_columns]
    return tuple(_HELD.get(word, word) for word in declared)


def _copy(table: Listed, copy: PreparedCopy, key: tuple[str, ...]) -> Listed:
    """A copy has the columns of its table, and those that it was given."""
    steps = {s.name: (s.low, s.high) for s in copy.steps.values()}
    if not table.parts:
        return replace(table, whole=steps)
    columns = table.columns | frozenset(copy.unit_columns)
    return replace(
        table, columns=columns, unit=copy.unit_columns, whole={**steps, RANK: (1, _MOST)},
        held={**table.held, **dict(zip(copy.unit_columns, key, strict=True))}, strays=False,
    )  # fmt: skip


def _table(policy: Policy, table: Table) -> Listed:
    steps = {c for key in table.foreign_keys for c in key.columns}
    led = [t.path[0] for t in policy.tables.values() if t.path]
    keys = {(table.name, step.key) for step in led if step.references == table.name}
    owned = {c for _, key in keys for c in key}
    columns = frozenset(table.columns) | steps | frozenset(table.key) | owned
    declared = {c.name: _HELD.get(c.declared, c.declared) for c in table.columns.values()}
    exact = {c.name: _EXACT[c.kind] for c in table.columns.values() if c.held_as_read}
    hidden = frozenset(c.name for c in table.columns.values() if c.identifier)
    if table.unit is None:
        return Listed(columns, held=declared, exact=exact)
    unit = policy.units[table.unit]
    if unit.is_row:
        return Listed(columns, table.unit, held=declared, identifiers=hidden, exact=exact)
    own = () if table.path else table.unit_columns
    keys |= {(step.references, step.columns) for step in table.path[:1]}
    return Listed(
        columns | frozenset(own), table.unit, own, len(unit.key), keys=frozenset(keys),
        held=declared, identifiers=hidden, strays=True, exact=exact,
    )  # fmt: skip
