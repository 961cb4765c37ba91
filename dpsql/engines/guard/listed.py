"""What the guard knows of a policy: listed columns, and whose rows a table holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dpsql.policy.companion import CATALOG, RANK, Companion, Shelf
from dpsql.policy.model import Policy, Table


@dataclass(frozen=True, slots=True)
class Listed:
    """A table: its columns, the kind of unit (None: public), and which columns are its key here.

    ``unit`` has a column for each part of the key; it is empty where the key is in a parent table,
    and for rows that are units of their own. ``parts`` is how many parts the key has. A prepared
    copy has ``whole`` columns too, of numbers that were bounded when it was made.
    """

    columns: frozenset[str]
    kind: str | None = None
    unit: tuple[str, ...] = ()
    parts: int = 0
    whole: frozenset[str] = frozenset()


Place = tuple[str, str]
"""A schema or catalog (empty for the source) and the name of a table there."""


def listed(policy: Policy, shelf: Shelf) -> Mapping[Place, Listed]:
    """The tables of a policy, and their copies, by the names that a statement may use."""
    tables = {("", name): _table(policy, table) for name, table in policy.tables.items()}
    for name, copy in shelf.copies.items():
        tables[CATALOG, name] = _copy(tables["", name], copy)
    return tables


def _copy(table: Listed, copy: Companion) -> Listed:
    """A copy has the columns of its table, and those that it was given."""
    steps = frozenset(s.name for s in copy.steps.values())
    if not table.parts:
        return replace(table, whole=steps)
    columns = table.columns | frozenset(copy.unit_columns)
    return replace(table, columns=columns, unit=copy.unit_columns, whole=steps | {RANK})


def _table(policy: Policy, table: Table) -> Listed:
    steps = {c for key in table.foreign_keys for c in key.columns}
    columns = frozenset(table.columns) | steps | frozenset(table.key)
    if table.unit is None:
        return Listed(columns)
    unit = policy.units[table.unit]
    if unit.is_row:
        return Listed(columns, table.unit)
    own = () if table.path else table.unit_columns
    return Listed(columns | frozenset(own), table.unit, own, len(unit.key))
