"""The analyst's own SQL over released tables, in a private DuckDB that holds nothing else.

Claim: the result is a function of released tables and public rows, so it is as private as they are.
    A statement ends when its execution ends. All post-processing together takes no more memory than
    its share; while there are enough parts, no login uses the part of another login.
Assumes: the engine is locked and its statements are listed (``engines.duckdb.lockdown``).
Argument: a statement runs on a connection where only its own tables are registered, and is
    interrupted once its execution ends. The engine of each part has the part's share as its own
    memory limit. A login keeps the part that it uses, or gets the least used part.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from dpsql.diagnostics.refusal import Ended, EngineFailed, Stopped, TooLarge
from dpsql.engines.duckdb.allowlist import NotListed, StatementCheck
from dpsql.engines.duckdb.allowlist.generated import GENERATED
from dpsql.engines.duckdb.fetch import fetch
from dpsql.engines.duckdb.lockdown import lock
from dpsql.engines.engine import Value
from dpsql.engines.incident import record_incident
from dpsql.execution import Room, has_ended, stoppable
from dpsql.ir.expressions import Column
from dpsql.memory.cache import Cache
from dpsql.memory.pool import Use
from dpsql.release.rows import ARROW, as_type, in_years

MOST_BOUND = 1_000
"""The most statements remembered as bound before."""
USUAL = 4 * 10**9
"""Bytes for post-processing where no server divides its memory; half of them are for the engine."""
PART = 60 * 10**6
"""With less than this an engine cannot group a hundred thousand released cells."""
MOST_PARTS = 4


class Part:
    """One engine and room for its results: a part of the memory for post-processing.

    Each thread has its own connection. Tables registered there are visible to no other connection.
    """

    def __init__(self, memory: int) -> None:
        """``memory``: half for the engine, three eighths for results, the rest for overhead."""
        self.room, self.logins = Room(memory * 3 // 8), Counter[Hashable]()
        self._memory, self._local = memory // 2, threading.local()
        self._root: duckdb.DuckDBPyConnection | None = None
        self._opening = threading.Lock()

    def connection(self) -> duckdb.DuckDBPyConnection:
        """This thread's connection; the first call opens the engine and locks it."""
        found: duckdb.DuckDBPyConnection | None = getattr(self._local, "connection", None)
        if found is None:
            with self._opening:
                if self._root is None:
                    self._root = _opened(self._memory)
            found = self._local.connection = self._root.cursor()
        return found


def _opened(memory: int) -> duckdb.DuckDBPyConnection:
    """A locked engine that writes no files; a connection does all its work in its own thread."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "memory_limit": f"{memory // 1000}KB",
        "temp_directory": "",
        "python_enable_replacements": "false",  # a setting of each connection
    }
    root = duckdb.connect(":memory:", config=config)
    lock(root)
    return root


class PostProcessor:
    """In-memory DuckDBs without files, extensions or tables of their own. Safe for threads."""

    def __init__(self, memory: int = USUAL, parts: int | None = None) -> None:
        """Open nothing yet. ``memory`` is the limit in bytes for all engines and results."""
        self.memory = memory
        count = parts or max(1, min(MOST_PARTS, memory // PART))
        self._parts = tuple(Part(memory // count) for _ in range(count))
        self._choosing = threading.Lock()
        self._local = threading.local()
        self._check = StatementCheck(GENERATED)
        self._bound = Cache[Hashable, pa.Table](Use.CACHED_CHECKS, MOST_BOUND)

    def open(self) -> None:
        """Open one engine, which proves that it can be locked; others are opened when needed."""
        self._connection()

    @contextmanager
    def part(self, login: Hashable) -> Iterator[Room]:
        """Run this thread's statements in the part of a login; yields the room for results.

        It is a part that the login uses already, or else the least used part.
        """
        with self._choosing:
            mine = (part for part in self._parts if part.logins[login])
            part = next(mine, None) or min(self._parts, key=lambda p: p.logins.total())
            part.logins[login] += 1
        outer, self._local.part = getattr(self._local, "part", None), part
        try:
            yield part.room
        finally:
            self._local.part = outer
            with self._choosing:
                part.logins[login] -= 1
                part.logins += Counter()  # drops logins whose number is zero

    def run(
        self, sql: str, tables: Mapping[str, pa.Table], values: Mapping[str, Value] | None = None
    ) -> pa.Table:
        """Run a generated statement over released tables."""
        connection = self._connection()
        failure: EngineFailed | Ended
        try:
            self._check.check(sql, tables)
            for name, table in tables.items():
                connection.register(name, table)
            with stoppable(connection.interrupt):
                found = fetch(connection.sql(sql, params=dict(values or {}) or None))
            return in_years(found)
        except duckdb.OutOfMemoryException:
            failure = TooLarge()
        except (duckdb.Error, OSError, NotListed) as error:  # an interrupted reader says OSError
            failure = Stopped() if has_ended() else record_incident("post-process", error, sql)
        finally:
            for name in tables:
                connection.unregister(name)
        raise failure

    def bind(
        self, sql: str, tables: Mapping[str, pa.Table], values: Mapping[str, Value] | None = None
    ) -> pa.Table:
        """Run a statement over tables without rows; one that has passed is not run again."""
        key = sql, tuple((name, tables[name].schema) for name in sorted(tables))
        found = self._bound.get(key)
        if found is None:
            found = self.run(sql, tables, values)
            self._bound.put(key, found)
        else:
            self._check.check(sql, tables)  # it passes again; its steps are counted
        return found

    def _connection(self) -> duckdb.DuckDBPyConnection:
        part: Part = getattr(self._local, "part", None) or self._parts[0]
        return part.connection()


def cast_columns(table: pa.Table, columns: tuple[Column, ...]) -> pa.Table:
    """The result with the types of the plan."""
    arrays = [
        as_type(table.column(i), ARROW[column.shape.kind], safe=False)
        for i, column in enumerate(columns)
    ]
    names = [f"o{i}" for i in range(len(columns))]
    return in_years(pa.Table.from_arrays(arrays, names=names))
