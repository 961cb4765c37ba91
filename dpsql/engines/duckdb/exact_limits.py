"""Limits that cut nothing, read from the rows for an owner: they are exact figures of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from dpsql.engines.duckdb.constants import quote_name
from dpsql.engines.duckdb.inspect import scalar_of
from dpsql.policy.model import Column, Policy, Table
from dpsql.policy.types import INSTANT, Kind, Scalar

_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ExactLimits:
    """The most rows of one unit in each private table, and the range of the values of columns.

    Only columns with a declared range are there.
    """

    rows: Mapping[str, int]
    ranges: Mapping[tuple[str, str], tuple[Scalar, Scalar]]


def read_exact_limits(path: Path, policy: Policy) -> ExactLimits:
    """Read the limits of all private tables of a policy. The database must not be open elsewhere."""
    private = [table for table in policy.tables.values() if not table.public]
    with duckdb.connect(str(path), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        ranges = {
            (table.name, column.name): ends
            for table in private
            for column in table.columns.values()
            if (ends := _ends(connection, table, column)) is not None
        }
        return ExactLimits({t.name: _most_rows(connection, policy, t) for t in private}, ranges)


def _most_rows(connection: duckdb.DuckDBPyConnection, policy: Policy, table: Table) -> int:
    """The most rows of one unit, found along the foreign keys that lead to the unit."""
    last, joins, place = table, "", "t0"
    for number, key in enumerate(table.path, 1):
        pairs = zip(key.columns, key.key, strict=True)
        equal = " AND ".join(
            f"{place}.{quote_name(own)} = t{number}.{quote_name(other)}" for own, other in pairs
        )
        joins += f" JOIN {quote_name(key.references)} AS t{number} ON {equal}"
        last, place = policy.tables[key.references], f"t{number}"
    unit = last.unit_columns or (table.path[-1].key if table.path else ())
    if not unit:
        return 1  # each row is a unit
    names = [f"{place}.{quote_name(name)}" for name in unit]
    known = " AND ".join(f"{name} IS NOT NULL" for name in names)
    row = connection.execute(
        f"SELECT max(n) FROM (SELECT count(*) AS n FROM {quote_name(table.name)} AS t0{joins}"
        f" WHERE {known} GROUP BY {', '.join(names)})"
    ).fetchone()
    return max(1, int((row or (0,))[0] or 0))


def _ends(
    connection: duckdb.DuckDBPyConnection, table: Table, column: Column
) -> tuple[Scalar, Scalar] | None:
    """The declared range, widened to all finite values of the column."""
    if column.range is None:
        return None
    name = quote_name(column.name)
    instant = f"timezone('UTC', {name})" if column.declared == INSTANT else name
    finite = f"isfinite({name}::DOUBLE)" if column.kind.numeric else f"isfinite({name})"
    row = connection.execute(
        f"SELECT min({instant}), max({instant}) FROM {quote_name(table.name)} WHERE {finite}"
    ).fetchone()
    low, high = (scalar_of(value) for value in row or (None, None))
    if low is None or high is None:
        return column.range
    if column.kind is Kind.INTEGER:
        low, high = max(-_MOST, int(low)), min(_MOST, int(high))  # type: ignore[arg-type]
    return min(column.range[0], low), max(column.range[1], high)
