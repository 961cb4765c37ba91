"""Prepared copies of private tables, as far as plans may know them: names and grids, never rows.

``dpsql prepare`` writes them beside the database. What is here depends on the policy alone, and on
which copies there are.
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
"""The name under which an engine keeps the rows of units that have more of them than declared."""
RANK = "dpsql rank"
"""The column of a copy that numbers the rows of a unit, in an order that says nothing."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A column of a copy that holds another's values, clamped, in whole steps of ``2**-shift``."""

    name: str
    shift: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class PreparedCopy:
    """The copy of one table.

    Beside the table's columns it has the whole key of the unit and ``RANK`` (where rows have units
    other than themselves), and columns in steps. Units have no numbers: those would depend on
    which other units there are, and so would what is drawn by them.
    """

    unit_columns: tuple[str, ...] = ()
    steps: Mapping[str, Steps] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreparedCopies:
    """The copies there are, by table, and the tables whose declared key was seen to be unique."""

    copies: Mapping[str, PreparedCopy] = field(default_factory=dict)
    keyed: frozenset[str] = frozenset()


def declared_key(table: Table) -> tuple[str, ...]:
    """Columns that no two rows of a table share, by declaration."""
    alone = table.max_rows_per_unit == 1 and not table.path
    return table.key or (table.unit_columns if alone else ())


def owners(table: Table) -> tuple[str, ...]:
    """Where a copy keeps the key of the unit: columns of the table itself, or added ones."""
    if not table.path:
        return table.unit_columns
    return tuple(f"dpsql unit key {i}" for i in range(len(table.unit_columns)))


def facts(policy: Policy, table: Table) -> str:
    """A digest of all that a copy of this table follows from; another policy's copy has another."""
    unit = None if table.unit is None else policy.units[table.unit].key
    columns = [
        [c.name, c.kind.value, c.range] for c in table.columns.values()
    ]  # what rows are clamped to, and read as
    path = [dataclasses.astuple(step) for step in table.path]
    return digest([table.name, columns, unit, table.unit_columns, path])


def over_limit_name(table: Table) -> str:
    """The name in ``OVER_LIMIT_CATALOG`` of the rows of units with more of them than declared.

    Another policy's rows of a table of that name, of other columns, units or limits, have another name.
    """
    columns = [[c.name, c.kind.value] for c in table.columns.values()]
    path = [dataclasses.astuple(step) for step in table.path]
    limit = table.max_rows_per_unit
    return f"{table.name} {digest([table.name, columns, table.unit_columns, path, limit])}"
