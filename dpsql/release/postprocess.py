"""The analyst's own SQL over released tables, in a private DuckDB that holds nothing else.

Claim: the result is a function of released tables and public rows, so it is as private as they.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Mapping

import duckdb
import pyarrow as pa

from dpsql.diagnostics.refusal import EngineFailed
from dpsql.engines.allowlist import NotListed, StatementCheck
from dpsql.engines.allowlist.generated import GENERATED
from dpsql.engines.engine import Value
from dpsql.engines.incident import failed
from dpsql.engines.lockdown import lock
from dpsql.release.rows import ARROW, as_type, in_years
from dpsql.sql.blocks import Writer
from dpsql.sql.expressions import Column
from dpsql.sql.relations import Relation

MOST_BOUND = 1_000
"""Statements that are known to be bound."""


class PostProcessor:
    """An in-memory DuckDB without files, extensions or tables of its own; one for each thread."""

    def __init__(self) -> None:
        """Nothing is opened before it is needed."""
        self._local = threading.local()
        self._check = StatementCheck(GENERATED)
        self._bound: dict[Hashable, pa.Table] = {}

    def open(self) -> None:
        """Make the engine of this thread, and see that it is closed; later it is made when needed."""
        self._connection()

    def run(
        self, sql: str, tables: Mapping[str, pa.Table], values: Mapping[str, Value] | None = None
    ) -> pa.Table:
        """Run a generated statement over released tables."""
        connection = self._connection()
        failure: EngineFailed
        try:
            self._check.check(sql, tables)
            for name, table in tables.items():
                connection.register(name, table)
            found = connection.sql(sql, params=dict(values or {}) or None).to_arrow_table()
            return in_years(found)
        except (duckdb.Error, NotListed) as error:
            failure = failed("post-process", error, sql)
        finally:
            for name in tables:
                connection.unregister(name)
        raise failure

    def bind(
        self, sql: str, tables: Mapping[str, pa.Table], values: Mapping[str, Value] | None = None
    ) -> pa.Table:
        """Run a statement over tables without rows; what has passed once is not run again."""
        key = sql, tuple((name, tables[name].schema) for name in sorted(tables))
        found = self._bound.get(key)
        if found is None:
            found = self.run(sql, tables, values)
            if len(self._bound) >= MOST_BOUND:
                self._bound.clear()
            self._bound[key] = found
        return found

    def _connection(self) -> duckdb.DuckDBPyConnection:
        connection: duckdb.DuckDBPyConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            config: dict[str, str | bool | int | float | list[str]] = {
                "threads": 1,
                "memory_limit": "2GB",
            }
            connection = duckdb.connect(":memory:", config=config)
            lock(connection)
            self._local.connection = connection
        return connection


def output_sql(relation: Relation, columns: Iterable[Column]) -> str:
    """The statement of the output columns, in order, named by position."""
    writer = Writer()
    block = writer.block(relation)
    items = ", ".join(f'{block.items[c.number]} AS "o{i}"' for i, c in enumerate(columns))
    return f"SELECT {'DISTINCT ' if block.distinct else ''}{items or '1'}{block.tail()}"


def typed(table: pa.Table, columns: tuple[Column, ...]) -> pa.Table:
    """The result with the types of the plan."""
    arrays = [
        as_type(table.column(i), ARROW[column.shape.kind], safe=False)
        for i, column in enumerate(columns)
    ]
    names = [f"o{i}" for i in range(len(columns))]
    return in_years(pa.Table.from_arrays(arrays, names=names))
