"""The guard's knowledge of a policy: the listed columns, and the units of a table's rows."""

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
"""The kinds of declared types. Each other type is a kind of its own."""
_EXACT = {
    Kind.BOOLEAN: Fact(TRUTH), Kind.INTEGER: Fact(WHOLE, bits=63), Kind.DOUBLE: Fact(DOUBLE),
    Kind.TEXT: Fact(TEXT), Kind.DATE: Fact(DATE), Kind.TIMESTAMP: Fact(TIME),
}  # fmt: skip
"""The facts of a column whose type in the source is the type that its kind is read as."""
_MOST = 2**31 - 1


@dataclass(frozen=True)
class Listed:
    """A table: its columns, the kind of its unit (None: public), and the unit's key columns.

    ``unit`` has a column for each part of the unit's key. It is empty if the key is in a parent
    table, and for rows that are units of their own. ``parts`` is the number of the key's parts. A
    prepared copy also has ``whole`` columns, of numbers that were bounded when it was made, with
    their bounds. ``keys`` are keys by which rows find their unit: the table's own key, if rows of
    other tables refer to it, and the key of the parent row that its rows refer to.
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
    """Whether rows may have no unit: their key is NULL, or their path leads to no unit."""
    ends: Mapping[str, tuple[End, End]] = field(default_factory=dict)
    """The bounds of all numbers of stored columns, as they were looked up in the data."""
    exact: Mapping[str, Fact] = field(default_factory=dict)
    """The types of columns that have one of ``KINDS`` in the engine's catalog."""

    @cached_property
    def facts(self) -> Mapping[str, Fact]:
        """The facts of each column."""
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
        """The columns that are parts of keys, for the reading of the table with this number."""
        found: dict[str, set[tuple[str, int, int, int]]] = {}
        for table, columns in self.keys:
            for part, column in enumerate(columns):
                origin = (table, part, len(columns), number)
                found.setdefault(column, set()).add(origin)
        for column, origins in found.items():
            yield column, replace(self.facts[column], keys=frozenset(origins))


Place = tuple[str, str]
"""A schema or catalog (empty for the source), and the name of a table there."""


def list_tables(policy: Policy, shelf: PreparedCopies) -> Mapping[Place, Listed]:
    """The tables of a policy, and their copies, by the names that a statement may use."""
    tables = {("", name): _table(policy, table) for name, table in policy.tables.items()}
    for name, copy in shelf.copies.items():
        tables[CATALOG, name] = _copy(tables["", name], copy, _key_types(policy, name))
    return tables


def _key_types(policy: Policy, name: str) -> tuple[str, ...]:
    """The declared types of the unit's key, in the table where the path ends."""
    table = policy.tables[name]
    holder = policy.tables[table.path[-1].references] if table.path else table
    declared = [holder.columns[column].declared for column in table.unit_columns]
    return tuple(_HELD.get(word, word) for word in declared)


def _copy(table: Listed, copy: PreparedCopy, key: tuple[str, ...]) -> Listed:
    """A prepared copy: the columns of its table, and the copy's own columns."""
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
