"""What the guard knows of a policy: listed columns, and whose rows a table holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpsql.policy.model import Policy, Table


@dataclass(frozen=True, slots=True)
class Listed:
    """A table: its columns, the kind of unit (None: public), and which columns are its key here.

    ``unit`` has a column for each part of the key; it is empty where the key is in a parent table,
    and for rows that are units of their own. ``parts`` is how many parts the key has.
    """

    columns: frozenset[str]
    kind: str | None = None
    unit: tuple[str, ...] = ()
    parts: int = 0


def listed(policy: Policy) -> Mapping[str, Listed]:
    """The tables of a policy by the names that a statement may use."""
    return {name: _table(policy, table) for name, table in policy.tables.items()}


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
