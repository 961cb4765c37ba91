"""Inspection of a DuckDB file for an owner who drafts a policy: its catalog, and facts of its rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb

from dpsql.engines.duckdb.constants import quote_name
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.policy.guess import likely_keys, names_people, person_of, suggests_source
from dpsql.policy.model import ForeignKey, Limits
from dpsql.policy.rounding import round_range, round_up
from dpsql.policy.source import SourceDescription, policy_type
from dpsql.policy.types import INSTANT, Scalar

MOST_VALUES, MOST_CHARACTERS = 24, 60
"""The most values of a column that is drafted with ``values``, and the characters of one."""
FEWEST_UNITS = 20
"""The fewest units (or rows, where no unit is known) that have a value which is drafted."""
FEWEST_LISTED = 3
"""The fewest values of a column that make a table its list, where no name says so."""
_BITS = {"smallint": 15, "integer": 31, "bigint": 63}
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


def bounds(
    path: Path, description: SourceDescription
) -> dict[tuple[str, str], tuple[Scalar, Scalar]]:
    """A range that contains each column's values, rounded outwards. It reads the rows."""
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


def with_seen_keys(
    path: Path, description: SourceDescription, repeated: frozenset[tuple[str, str]]
) -> SourceDescription:
    """The description with the columns that look like keys, and are unique. It reads the rows.

    Files have no constraints that would say so.
    """
    tables = {}
    with duckdb.connect(str(path), read_only=True) as connection:
        for name, there in description.tables.items():
            keys = {
                column
                for column in likely_keys(name, there)
                if (name, column) not in repeated
                and not connection.execute(
                    f"SELECT 1 FROM {quote_name(name)} WHERE {quote_name(column)} IS NULL LIMIT 1"
                ).fetchone()
            }
            fresh = [frozenset({c}) for c in there.columns if c in keys]
            unique = (*there.unique, *(key for key in fresh if key not in there.unique))
            tables[name] = replace(there, unique=unique, not_null=there.not_null | keys)
    return SourceDescription(tables)


def find_values(
    path: Path, description: SourceDescription, held: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """The values of texts that have few, each of which many units have. It reads the rows.

    ``held`` has the columns of the unit's key of some tables. Values of few units are left out.
    """
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    with duckdb.connect(str(path), read_only=True) as connection:
        for table, there in description.tables.items():
            who = ", ".join(map(quote_name, held.get(table, ())))
            counted = f"count(DISTINCT ({who}))" if who else "count(*)"
            for column, engine_type in there.columns.items():
                if (
                    engine_type != "VARCHAR"
                    or names_people(column)
                    or person_of(column, engine_type)
                ):
                    continue
                name = quote_name(column)
                rows = connection.execute(
                    f"SELECT {name}, {counted} FROM {quote_name(table)} WHERE {name} IS NOT NULL"
                    f" GROUP BY {name} LIMIT {MOST_VALUES + 1}"
                ).fetchall()
                common = sorted(value for value, number in rows if number >= FEWEST_UNITS)
                if len(rows) <= MOST_VALUES and common and all(map(_is_word, common)):
                    found[table, column] = tuple(common)
    return found


def find_value_sources(
    path: Path, description: SourceDescription, lists: Collection[str]
) -> dict[tuple[str, str], tuple[str, str]]:
    """For texts, the table of ``lists`` and its column that has all of their values, each once.

    A column whose name says so comes first. Without such a name, several values must be found.
    """
    found: dict[tuple[str, str], tuple[str, str]] = {}
    with duckdb.connect(str(path), read_only=True) as connection:
        keys = [(t, c) for t in sorted(lists) for c in _unique_texts(connection, t, description)]
        for table, there in description.tables.items():
            for column, engine_type in there.columns.items():
                if table in lists or engine_type != "VARCHAR" or names_people(column):
                    continue
                likely = [k for k in keys if suggests_source(column, *k)]
                for key in (*likely, *(k for k in keys if k not in likely)):
                    least = 1 if key in likely else FEWEST_LISTED
                    if _has_all(connection, (table, column), key, least):
                        found[table, column] = key
                        break
    return found


def _unique_texts(
    connection: duckdb.DuckDBPyConnection, table: str, description: SourceDescription
) -> Iterator[str]:
    """The columns of texts in which every row has another value."""
    for column, engine_type in description.tables[table].columns.items():
        name = quote_name(column)
        row = connection.execute(
            f"SELECT count(DISTINCT {name}) = count(*) AND count(*) > 1 FROM {quote_name(table)}"
        ).fetchone()
        if engine_type == "VARCHAR" and row == (True,):
            yield column


def _has_all(
    connection: duckdb.DuckDBPyConnection, column: tuple[str, str], key: tuple[str, str], least: int
) -> bool:
    """Whether a column has at least so many values, and the key has each of them."""
    (table, name), (listing, listed) = (tuple(map(quote_name, pair)) for pair in (column, key))
    row = connection.execute(
        f"SELECT count(*) >= {least} AND count(*) = count(k.v) FROM"
        f" (SELECT DISTINCT {name} AS v FROM {table} WHERE {name} IS NOT NULL) AS c"
        f" LEFT JOIN (SELECT {listed} AS v FROM {listing}) AS k ON k.v = c.v"
    ).fetchone()
    return row == (True,)


def _is_word(value: str) -> bool:
    return value.strip() != "" and len(value) <= MOST_CHARACTERS and value.isprintable()


def most_rows(path: Path, held: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The most rows of each table with the same values, without NULL, in its columns; rounded up."""
    found = {}
    with duckdb.connect(str(path), read_only=True) as connection:
        for table, columns in held.items():
            keys = ", ".join(map(quote_name, columns))
            known = " AND ".join(f"{quote_name(name)} IS NOT NULL" for name in columns)
            row = connection.execute(
                f"SELECT max(n) FROM (SELECT count(*) AS n FROM {quote_name(table)} WHERE {known} GROUP BY {keys})"
            ).fetchone()
            found[table] = round_up(max(1, int((row or (0,))[0] or 0)))
    return found


def _extremes(
    connection: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, str]
) -> Iterator[tuple[str, Scalar, Scalar]]:
    for column, held in columns.items():
        declared = policy_type(held) or ""
        if not declared.startswith(_RANGED):
            continue
        name = quote_name(column)
        finite = f" WHERE isfinite({name})" if held in _WITH_INFINITY else ""
        name = f"timezone('UTC', {name})" if policy_type(held) == INSTANT else name
        row = connection.execute(
            f"SELECT min({name}), max({name}) FROM {quote_name(table)}{finite}"
        ).fetchone()
        low, high = (scalar_of(value) for value in row or (None, None))
        if low is not None and high is not None and low != high:
            yield column, *_within(declared, *round_range(low, high))


def _within(declared: str, low: Scalar, high: Scalar) -> tuple[Scalar, Scalar]:
    """A rounded range, cut to what the declared type has."""
    bits = _BITS.get(declared)
    if bits is None or not isinstance(low, int) or not isinstance(high, int):
        return low, high
    return max(low, -(2**bits)), min(high, 2**bits - 1)


_WITH_INFINITY = ("DOUBLE", "FLOAT", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")


def scalar_of(value: object) -> Scalar | None:
    """A value of the engine as a policy holds it; None where it holds no such value."""
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
