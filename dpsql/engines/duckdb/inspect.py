"""Inspection of a DuckDB file, or of Parquet and CSV files, for an owner who drafts a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb

from dpsql.diagnostics.quote import quote
from dpsql.diagnostics.refusal import SourceMismatch
from dpsql.engines.duckdb.constants import quote_name
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.policy.guess import likely_keys
from dpsql.policy.model import ForeignKey, Limits
from dpsql.policy.source import SourceDescription, policy_type
from dpsql.policy.types import INSTANT, Scalar

READERS = {
    ".parquet": "read_parquet",
    ".pq": "read_parquet",
    ".csv": "read_csv",
    ".tsv": "read_csv",
}
"""The function that reads a file, by the file's suffix."""
_RANGED = ("smallint", "integer", "bigint", "real", "double", "decimal", "date", "timestamp")


def describe(path: Path) -> SourceDescription:
    """Tables, types and constraints of a DuckDB file; no row is read."""
    engine = DuckDB(path, Limits())
    try:
        found = engine.describe()
    finally:
        engine.close()
    links = _foreign_keys(path)
    return SourceDescription(
        {
            name: replace(table, foreign_keys=tuple(links.get(name, ())))
            for name, table in found.tables.items()
        }
    )


def import_files(files: Sequence[Path], database: Path) -> None:
    """Make a DuckDB file with a table for each file, under the file's name; all of them or none."""
    try:
        with duckdb.connect(str(database)) as connection:
            for file in files:
                reader = READERS[file.suffix.lower()]
                name = "'" + str(file).replace("'", "''") + "'"
                connection.execute(
                    f"CREATE TABLE {quote_name(file.stem)} AS SELECT * FROM {reader}({name})"
                )
    except duckdb.Error as error:
        database.unlink(missing_ok=True)
        kind = str(error).partition("\n")[0]  # further lines quote rows
        raise SourceMismatch(f"the files could not be read: {quote(kind, 200)}") from None


def bounds(
    path: Path, description: SourceDescription
) -> dict[tuple[str, str], tuple[Scalar, Scalar]]:
    """The least and greatest value of each column that may have a range. It reads the rows."""
    with duckdb.connect(str(path), read_only=True) as connection:
        return {
            (table, column): (low, high)
            for table, there in description.tables.items()
            for column, low, high in _extremes(connection, table, there.columns)
        }


def find_repeated_columns(path: Path, description: SourceDescription) -> frozenset[tuple[str, str]]:
    """The columns that look like keys, but have values that rows share. It reads the rows."""
    with duckdb.connect(str(path), read_only=True) as connection:
        return frozenset(
            (table, column)
            for table, there in description.tables.items()
            for column in likely_keys(table, there)
            if connection.execute(
                f"SELECT 1 FROM {quote_name(table)} GROUP BY {quote_name(column)} HAVING count(*) > 1 LIMIT 1"
            ).fetchone()
        )


def most_rows(path: Path, held: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The most rows of each table with the same values, without NULL, in its columns."""
    found = {}
    with duckdb.connect(str(path), read_only=True) as connection:
        for table, columns in held.items():
            keys = ", ".join(map(quote_name, columns))
            known = " AND ".join(f"{quote_name(name)} IS NOT NULL" for name in columns)
            row = connection.execute(
                f"SELECT max(n) FROM (SELECT count(*) AS n FROM {quote_name(table)} WHERE {known} GROUP BY {keys})"
            ).fetchone()
            found[table] = max(1, int((row or (0,))[0] or 0))
    return found


def _extremes(
    connection: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, str]
) -> Iterator[tuple[str, Scalar, Scalar]]:
    for column, held in columns.items():
        if not (policy_type(held) or "").startswith(_RANGED):
            continue
        name = quote_name(column)
        finite = f" WHERE isfinite({name})" if held in _WITH_INFINITY else ""
        name = f"timezone('UTC', {name})" if policy_type(held) == INSTANT else name
        row = connection.execute(
            f"SELECT min({name}), max({name}) FROM {quote_name(table)}{finite}"
        ).fetchone()
        low, high = (_scalar(value) for value in row or (None, None))
        if low is not None and high is not None and low != high:
            yield column, low, high


_WITH_INFINITY = ("DOUBLE", "FLOAT", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")


def _scalar(value: object) -> Scalar | None:
    match value:
        case float() | Decimal():
            return Fraction(value)
        case int() | datetime() | date():
            return value
        case _:
            return None


def _foreign_keys(path: Path) -> dict[str, list[ForeignKey]]:
    found: dict[str, list[ForeignKey]] = {}
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = connection.execute(
            "SELECT table_name, constraint_column_names, referenced_table, referenced_column_names"
            " FROM duckdb_constraints() WHERE constraint_type = 'FOREIGN KEY'"
        ).fetchall()
    for table, columns, referenced, key in rows:
        found.setdefault(table, []).append(ForeignKey(tuple(columns), referenced, tuple(key)))
    return found
