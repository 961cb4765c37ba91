"""The names under which an engine keeps the rows of units with more of them than declared."""

from __future__ import annotations

from dpsql.declarations.queries import over_limit_rows
from dpsql.engines.duckdb.write import write_rows
from dpsql.policy.model import Table
from dpsql.policy.version import digest


def name_kept_rows(table: Table) -> str:
    """A name that other declarations of the table do not have: they keep other rows."""
    return f"{table.name} {digest([write_rows(over_limit_rows(table))])}"
