"""What groups public tables list: counted first, then read, once for each query and opened database.

Claim: it depends on the query and on public tables alone; each query passes the second check as one that
    reads nothing else.
Assumes: the database does not change while it is open (``engines.duckdb.engine``), so what is remembered stays
    true, and a statement that lists the same groups by itself finds the same.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

import pyarrow as pa

from dpsql.engines.duckdb.engine import Constants
from dpsql.memory.cache import Cache
from dpsql.memory.pool import Use
from dpsql.plan.nodes import PublicRows

MOST_KEPT = 2_000
"""Queries of which numbers, or rows, are remembered."""


class Reader(Protocol):
    """An engine behind its second check."""

    def read_public(self, sql: str, /) -> pa.Table:
        """The rows of a statement that reads public tables only."""
        ...

    def admit_public(self, sql: str, /) -> None:
        """Raise unless it is one."""
        ...


class PublicGroups:
    """Counts and lists public groups. Safe to use from several threads."""

    def __init__(self, constants: Constants, reader: Reader) -> None:
        """``constants`` holds no data; ``reader`` has the public tables."""
        self._constants, self._reader = constants, reader
        self._counts = Cache[str, int](Use.CACHED_COUNTS, MOST_KEPT)
        self._rows = Cache[str, PublicRows](Use.CACHED_COUNTS, MOST_KEPT)

    def count(self, sql: str) -> int:
        """How many rows a query over constants has."""
        return self._constants.count(sql)

    def count_public(self, sql: str) -> int:
        """How many rows a query over public tables has."""
        found, counting = self._counts.get(sql), f"SELECT count(*) AS n FROM ({sql}) AS c"
        self._reader.admit_public(counting)  # its steps count, also where the number is known
        if found is None:
            table = self._reader.read_public(counting)
            found = int(table.column(0)[0].as_py())
            self._counts.put(sql, found)
        return found

    def read_public(self, sql: str) -> PublicRows:
        """The rows of a query over public tables, in the order that it asks for."""
        found = self._rows.get(sql)
        self._reader.admit_public(sql)
        if found is None:
            table = self._reader.read_public(sql)
            found = PublicRows(table, _digest(table))
            self._rows.put(sql, found)
        return found


def _digest(table: pa.Table) -> str:
    """What rows of equal values share: of points in time their number, which years do not bound."""
    digest = hashlib.sha256()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32())  # noqa: PLW2901 (the same values)
        elif pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())  # noqa: PLW2901 (the same values)
        digest.update(repr((name, str(column.type), column.to_pylist())).encode())
    return digest.hexdigest()
