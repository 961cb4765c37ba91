"""What plans may know of prepared copies of private tables: names and grids, never rows.

``dpsql prepare`` writes the copies beside the database. The values here depend only on the policy
and on which copies exist.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from dpsql.policy.model import Policy, Table
from dpsql.policy.version import digest

CATALOG = "dpsql_prepared"
"""The name under which an engine finds the copies."""
OVER_LIMIT_CATALOG = "dpsql_heavy"
"""The name under which an engine keeps the rows of units that have more rows than declared."""
RANK = "dpsql rank"
"""The column of a copy that numbers the rows of a unit, in a random order."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A column of a copy with the clamped values of another, in whole steps of ``2**-shift``."""

    name: str
    shift: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class PreparedCopy:
    """The copy of one table.

    Besides the table's columns it has the whole key of the unit and ``RANK`` (unless each row is a
    unit), and columns in steps. Units are not numbered: numbers would depend on which other units
    exist, and so would draws made from them.
    """

    unit_columns: tuple[str, ...] = ()
    steps: Mapping[str, Steps] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreparedCopies:
    """The existing copies, by table, and the tables whose declared key was verified as unique."""

    copies: Mapping[str, PreparedCopy] = field(default_factory=dict)
    keyed: frozenset[str] = frozenset()


def declared_key(table: Table) -> tuple[str, ...]:
    """Columns that no two rows of a table share, by declaration."""
    alone = table.max_rows_per_unit == 1 and not table.path
    return table.key or (table.unit_columns if alone else ())


def owners(table: Table) -> tuple[str, ...]:
    """The columns of a copy with the key of the unit: the table's own columns, or added ones."""
    if not table.path:
        return table.unit_columns
    return tuple(f"dpsql unit key {i}" for i in range(len(table.unit_columns)))


def facts(policy: Policy, table: Table) -> str:
    """A digest of everything in the policy that determines a copy of this table."""
    unit = None if table.unit is None else policy.units[table.unit].key
    columns = [
        [c.name, c.kind.value, c.range] for c in table.columns.values()
    ]  # the ranges that values are clamped to, and the kinds that they are read as
    path = [dataclasses.astuple(step) for step in table.path]
    return digest([table.name, columns, unit, table.unit_columns, path])


def over_limit_name(table: Table) -> str:
    """The name in ``OVER_LIMIT_CATALOG`` of the rows of units that have more rows than declared.

    A table of the same name with other columns, units or limits (of another policy) gets another
    name.
    """
    columns = [[c.name, c.kind.value] for c in table.columns.values()]
    path = [dataclasses.astuple(step) for step in table.path]
    limit = table.max_rows_per_unit
    return f"{table.name} {digest([table.name, columns, table.unit_columns, path, limit])}"
