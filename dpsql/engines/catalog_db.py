"""A private in-memory DuckDB for PostgreSQL's catalog. It holds what a policy says, and no data."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import duckdb
import pyarrow as pa

from dpsql.engines.allowlist import Listing, NotListed, StatementCheck
from dpsql.engines.deadlines import Deadlines
from dpsql.engines.lockdown import lock

MEMORY, SECONDS = "512MB", 5.0
LARGEST_ANSWER = 256_000_000
"""Bytes: rows that were made out of nothing are memory too."""
_BATCH = 100_000


class Effects(Protocol):
    """What a statement does beyond its rows, by functions that it calls."""

    def stop(self, process: int, *, ends: bool) -> bool:
        """Stop a session, or end it; false when there is none."""
        ...

    def set(self, name: str, value: str, *, local: bool) -> str:
        """Change a setting of the session that asks; what it is then."""
        ...


Variable = str | int | Sequence[Sequence[str | None]]
"""What a statement may be told of the session it is asked in."""

AS_POSTGRESQL = {
    "integer_division": "true",
    "default_null_order": "nulls_last_on_asc_first_on_desc",
}
"""Constants are computed, and rows sorted, as clients of PostgreSQL expect."""


class CatalogFailed(Exception):
    """A statement that the catalog does not answer.

    ``kind`` says why, in one word; ``words`` are the engine's own, which quote nothing but the
    statement and the catalog.
    """

    def __init__(self, kind: str, words: str) -> None:
        """Hold both."""
        super().__init__(words)
        self.kind, self.words = kind, words


class CatalogRows(NamedTuple):
    """Names and engine types of the columns, and the rows."""

    columns: tuple[tuple[str, str], ...]
    table: pa.Table


_KINDS: tuple[tuple[type[Exception], str], ...] = (
    (duckdb.InterruptException, "interrupted"),
    (duckdb.ParserException, "syntax"),
    (duckdb.CatalogException, "unknown"),
    (duckdb.BinderException, "binding"),
    (duckdb.ConversionException, "conversion"),
    (duckdb.OutOfRangeException, "conversion"),
    (duckdb.InvalidInputException, "conversion"),
    (duckdb.OutOfMemoryException, "memory"),
)


_WORDS = {
    "INTERRUPT": "interrupted",
    "Conversion": "conversion",
    "Out of Range": "conversion",
    "Invalid Input": "conversion",
    "Out of Memory": "memory",
}
"""How an error begins that comes while rows are read, and has lost its type on the way."""


def _kind(error: Exception) -> str:
    by_type = (kind for known, kind in _KINDS if isinstance(error, known))
    return next(by_type, _WORDS.get(str(error).partition(" Error")[0], "other"))


def _gathered(reader: pa.RecordBatchReader) -> pa.Table:
    """Every row, unless they are more than an answer may have."""
    batches, size = [], 0
    with reader:
        for batch in reader:
            size += batch.nbytes
            if size > LARGEST_ANSWER:
                raise CatalogFailed("memory", f"an answer has at most {LARGEST_ANSWER} bytes")
            batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema)


def _constant(value: Variable | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "[" + ", ".join("[" + ", ".join(map(_constant, v)) + "]" for v in value) + "]"


class _Asker(threading.local):
    """The effects of the statement that this thread runs: a function is called by its own thread."""

    effects: Effects | None = None

    def stop(self, process: int, ends: bool) -> bool:  # noqa: FBT001
        """``pgx_stop``: what the statement that asks may stop."""
        return self.effects is not None and self.effects.stop(process, ends=ends)

    def set(self, name: str, value: str, local: bool) -> str:  # noqa: FBT001
        """``pgx_set``: what the statement that asks sets in its session."""
        return value if self.effects is None else self.effects.set(name, value, local=local)


class CatalogDatabase:
    """Made once from a script and tables; after that it is locked, and only read."""

    def __init__(
        self, before: Iterable[str], tables: Mapping[str, pa.Table], after: Iterable[str],
        listing: Listing,
    ) -> None:  # fmt: skip
        """``before`` makes the tables that ``tables`` fill by column name; ``after`` makes the rest.

        ``listing`` is what statements may name.
        """
        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": 1,
            "memory_limit": MEMORY,
            "python_enable_replacements": "false",
            **AS_POSTGRESQL,
        }
        self._root = duckdb.connect(":memory:", config=config)
        self._local = threading.local()
        self._running: dict[int, duckdb.DuckDBPyConnection] = {}
        self._deadlines = Deadlines()
        self._asker = _Asker()
        self._check = StatementCheck(listing)
        self._root.create_function(
            "pgx_stop",
            self._asker.stop,
            ["BIGINT", "BOOLEAN"],
            "BOOLEAN",
            side_effects=True,
        )
        self._root.create_function(
            "pgx_set",
            self._asker.set,
            ["VARCHAR", "VARCHAR", "BOOLEAN"],
            "VARCHAR",
            side_effects=True,
        )
        self._root.execute("SET GLOBAL TimeZone = 'UTC'")  # whatever the machine's is
        for statement in before:
            self._root.execute(statement)
        for name, rows in tables.items():
            self._root.register("rows_to_add", rows)
            self._root.execute(f"INSERT INTO {name} BY NAME SELECT * FROM rows_to_add")
            self._root.unregister("rows_to_add")
        for statement in after:
            self._root.execute(statement)
        lock(self._root)

    def run(
        self, sql: str, parameters: Sequence[Any] = (),
        variables: Mapping[str, Variable] | None = None, effects: Effects | None = None,
    ) -> CatalogRows:  # fmt: skip
        """Answer one SELECT, in a transaction that can write nothing.

        ``effects`` are what ``pgx_stop`` and ``pgx_set`` do for this statement, and for no other.
        """
        self._admit(sql)
        self._asker.effects = effects
        try:
            with self._reading(variables or {}) as cursor:
                found = cursor.sql(sql, params=list(parameters) or None)
                columns = zip(found.columns, (str(t) for t in found.types), strict=True)
                return CatalogRows(tuple(columns), _gathered(found.to_arrow_reader(_BATCH)))
        finally:
            self._asker.effects = None

    def interrupt(self, thread: int) -> None:
        """Stop the statement that a thread runs here, if it runs one."""
        cursor = self._running.get(thread)
        if cursor is not None:
            cursor.interrupt()

    def _admit(self, sql: str) -> None:
        try:
            self._check.check(sql)
        except NotListed as refused:
            failure = CatalogFailed(refused.kind, refused.name)
        else:
            return
        raise failure

    @contextmanager
    def _reading(self, variables: Mapping[str, Variable]) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._cursor(variables)
        failure: CatalogFailed | None = None
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        self._running[threading.get_ident()] = cursor
        try:
            with self._deadlines.within(SECONDS, cursor.interrupt):
                yield cursor
        except (duckdb.Error, OSError) as error:
            failure = CatalogFailed(_kind(error), str(error).split("\n", 1)[0])
        finally:
            self._running.pop(threading.get_ident(), None)
            cursor.execute("ROLLBACK")
        if failure is not None:
            raise failure

    def _cursor(self, variables: Mapping[str, Variable]) -> duckdb.DuckDBPyConnection:
        """This thread's cursor, with the session's variables set."""
        cursor: duckdb.DuckDBPyConnection | None = getattr(self._local, "cursor", None)
        if cursor is None:
            cursor = self._local.cursor = self._root.cursor()
            self._local.variables = {}
        for name, value in variables.items():
            if self._local.variables.get(name) != value:
                cursor.execute(f"SET VARIABLE {name} = {_constant(value)}")
                self._local.variables[name] = value
        return cursor


def check_engine() -> None:
    """Make such a database without tables, which raises where it could get out; for a start."""
    nobody = frozenset[str]()
    CatalogDatabase((), {}, (), Listing(frozenset(), nobody, nobody, nobody, nobody))
