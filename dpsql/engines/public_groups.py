"""Public groups: counted first, then read, once for each query and opened database.

Claim: the groups depend on the query and on public tables alone. Each query passes the second check
    as one that reads nothing else.
Assumes: the database does not change while it is open (``engines.duckdb.engine``). So remembered
    results stay true, and a statement that lists the same groups by itself finds the same.
Argument: the reader is an engine behind its second check, which admits only statements over public
    tables. Results are remembered by the text of the query.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from dpsql.engines.duckdb.engine import Constants
from dpsql.engines.duckdb.groups import write_groups, write_list, write_public
from dpsql.ir.public_groups import Combinations, PublicGroups, RowList
from dpsql.memory.cache import Cache
from dpsql.memory.pool import Use
from dpsql.plan.nodes import PublicQuery, PublicRows

MOST_KEPT = 2_000
"""The most queries whose numbers, or rows, are remembered."""


class Reader(Protocol):
    """An engine behind its second check."""

    def read_public(self, sql: str, /) -> pa.Table:
        """The rows of a statement that reads public tables only."""
        ...

    def admit_public(self, sql: str, /) -> None:
        """Raise unless the statement reads public tables only."""
        ...


class PublicEnumerator:
    """Counts and lists public groups. Safe to use from several threads."""

    def __init__(self, constants: Constants, reader: Reader) -> None:
        """``constants`` holds no data; ``reader`` has the public tables."""
        self._constants, self._reader = constants, reader
        self._counts = Cache[str, int](Use.CACHED_COUNTS, MOST_KEPT)
        self._rows = Cache[str, PublicRows](Use.CACHED_COUNTS, MOST_KEPT)

    def count(self, part: Combinations) -> int:
        """The number of combinations of constants."""
        return self._constants.count(write_list(part))

    def count_public(self, part: Combinations | RowList) -> int:
        """The number of rows of a list that reads public tables."""
        sql = write_list(part)
        found, counting = self._counts.get(sql), f"SELECT count(*) AS n FROM ({sql}) AS c"
        self._reader.admit_public(counting)  # its steps count, also where the number is known
        if found is None:
            table = self._reader.read_public(counting)
            found = int(table.column(0)[0].as_py())
            self._counts.put(sql, found)
        return found

    def read_public(self, groups: PublicGroups) -> PublicRows:
        """The groups that public tables list, in the order of their keys."""
        sql = write_groups(groups)
        found = self._rows.get(sql)
        self._reader.admit_public(sql)
        if found is None:
            table = self._reader.read_public(sql)
            found = PublicRows(table, _digest(table))
            self._rows.put(sql, found)
        return found


@dataclass(frozen=True, slots=True)
class PublicReader:
    """Reads the public rows of a plan."""

    reader: Reader

    def read_public(self, query: PublicQuery) -> pa.Table:
        """The rows, with the fields of the query as columns."""
        return self.reader.read_public(write_public(query))

    def admit_public(self, query: PublicQuery) -> None:
        """Raise unless its statement passes the second check."""
        self.reader.admit_public(write_public(query))


def _digest(table: pa.Table) -> str:
    """A digest of the rows' values. Dates and times are read as numbers, without a year limit."""
    digest = hashlib.sha256()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32())  # noqa: PLW2901 (the same values)
        elif pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())  # noqa: PLW2901 (the same values)
        digest.update(repr((name, str(column.type), column.to_pylist())).encode())
    return digest.hexdigest()
