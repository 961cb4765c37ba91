"""A ledger in PostgreSQL, which several proxies on several machines can share.

Writers run one after the other: every transaction that writes first locks one row. So it reads what
the transaction before it wrote, and the whole is as serial as a file. A commit returns when the
server's disk has it. Connect to the primary, without a pooler that shares sessions: the lock that
tells others that this proxy is alive belongs to its session.
"""

from __future__ import annotations

import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import ClassVar, TypeVar

import psycopg

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger import failures, postgres_failures
from dpsql.ledger.head import HeadNote
from dpsql.ledger.migrate import is_old
from dpsql.ledger.postgres_schema import LOCKED, Connection, connect_server
from dpsql.ledger.rows import Database
from dpsql.ledger.store import Clock
from dpsql.ledger.tables import TableLedger
from dpsql.ledger.writer import PATIENCE, Writer

T = TypeVar("T")
Connect = Callable[[], Connection]


class PostgresLedger(TableLedger):
    """A ledger on a server. Use ``open`` to create one."""

    def __init__(
        self, opener: Connect, place: str, clock: Clock, wait: float, note: HeadNote | None,
        ended: threading.Event,
    ) -> None:  # fmt: skip
        """Use ``open`` instead; this only sets the attributes."""
        self.place, self._name = place, place
        self._clock, self._connect, self._ended = clock, opener, ended
        self._key = secrets.randbits(63)
        self._owner = str(self._key)
        self._writer = PostgresWriter(opener, place, wait, self._key, note)
        self._reader: Connection | None = None
        self._reading, self._process = threading.Lock(), os.getpid()
        self._patience, self._silent = wait, -math.inf
        self._closed = False

    @classmethod
    def open(
        cls,
        dsn: str,
        clock: Clock,
        *,
        schema: str = "dpsql",
        wait: float = 10.0,
        head: Path | None = None,
        settle: bool = True,
        must_exist: bool = False,
    ) -> PostgresLedger:
        """The ledger in ``schema`` at ``dsn``; it is created if missing, unless ``must_exist``.

        Holds of proxies that are gone are settled: they stay spent. Without ``settle`` they are
        left alone, for callers that only read or repair. ``head`` is the file for ``HeadNote``.
        """
        place, ended = place_name(dsn, schema), threading.Event()

        def opener() -> Connection:
            return connect_server(dsn, schema, place, wait, ended, must_exist=must_exist)

        note = None if head is None else HeadNote(head, place)
        ledger = cls(opener, place, clock, wait, note, ended)
        try:
            ledger._write(ledger._settle if settle else lambda _: None)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def close(self) -> None:
        """Close the connections. Holds that are still open stay spent."""
        if os.getpid() != self._process:
            return  # the connections are the parent's: closing them would disturb it
        self._ended.set()
        self._writer.close()
        self._closed = True
        if self._reader is not None:
            self._reader.raw.end()
        if self._reading.acquire(timeout=PATIENCE):
            try:
                self._drop_reader()
            finally:
                self._reading.release()

    def _write(self, task: Callable[[Database], T]) -> T:
        self._check_process()
        try:
            return self._writer.run(task)
        except failures.UNREADABLE:
            raise failures.damaged_ledger(self.place) from None

    def probe(self, seconds: float = 2.0) -> None:
        """Raise ``LedgerFailed`` unless a change is durable within these seconds."""
        self._check_process()
        self._writer.probe(seconds)

    @contextmanager
    def _read(self) -> Iterator[Database]:
        self._check_process()
        since = time.monotonic()
        with self._reading:
            self._check_open()
            if self._silent > since:  # another reader found it silent while this one waited
                raise failures.slow(self.place, self._patience)
            begun = time.monotonic()
            try:
                connection = self._moment()
                yield connection
                connection.execute("COMMIT")
            except psycopg.Error as error:
                self._let_go(begun)
                raise postgres_failures.from_postgres(self._name, error) from None
            except failures.UNREADABLE:
                self._drop_reader()
                raise failures.damaged_ledger(self.place) from None
            except BaseException:
                self._let_go(begun)
                raise
            finally:
                if self._closed:
                    self._drop_reader()

    def _moment(self) -> Connection:
        """The reader inside a new transaction; it connects again if the server was away."""
        if self._reader is not None:
            if answers(self._reader, _MOMENT):
                return self._reader
            self._drop_reader()
        self._reader = self._writer.same(self._connect())
        self._check_open()
        self._reader.execute(_MOMENT)
        return self._reader

    def _check_open(self) -> None:
        if self._closed:
            raise failures.closed_ledger(self.place)

    def _let_go(self, begun: float) -> None:
        """Drop the reader after a failed read that began then; note if the server was silent."""
        self._drop_reader()
        now = time.monotonic()
        if now - begun >= self._patience:
            self._silent = now

    def _drop_reader(self) -> None:
        if self._reader is not None:
            self._reader.raw.close()
        self._reader = None

    @contextmanager
    def _snapshot(self) -> Iterator[Database]:
        self._check_process()
        connection = self._writer.same(self._connect())
        try:
            connection.execute(_MOMENT)
            yield connection
        except psycopg.Error as error:
            raise postgres_failures.from_postgres(self._name, error) from None
        except failures.UNREADABLE:
            raise failures.damaged_ledger(self.place) from None
        finally:
            connection.raw.close()

    def _gone(self, db: Database, owner: str, age: timedelta) -> bool:  # noqa: ARG002
        """A live proxy holds the lock of its name for as long as it is connected.

        A proxy that lost its connection for a moment may be taken for dead. Its open queries then
        stay spent and cannot be answered.
        """
        if owner == self._owner:
            return False
        [(free,)] = db.execute("SELECT pg_try_advisory_xact_lock(?)", (int(owner),))
        return bool(free)

    def _integrity(self, db: Database) -> list[str]:  # noqa: ARG002
        return []  # the server checks its own pages

    def _bytes(self, db: Database) -> int:
        """The size of the tables with their indexes."""
        [(found,)] = db.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
            " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
        )
        return int(found)

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise failures.forked_ledger(self.place)


class PostgresWriter(Writer):
    """The connection that writes; it connects again when the server was away."""

    fatal: ClassVar[type[Exception]] = psycopg.Error

    def __init__(
        self, opener: Connect, place: str, wait: float, key: int, note: HeadNote | None
    ) -> None:
        super().__init__(place, wait, note)
        self._connect, self._name, self._key = opener, place, key
        self._identity = ""
        self.connection: Connection | None = None

    def same(self, connection: Connection) -> Connection:
        """Return the connection if it leads to the ledger that was opened; else raise."""
        self._identity = self._identity or connection.identity
        if connection.identity != self._identity:
            connection.raw.close()
            raise postgres_failures.another(self._name)
        return connection

    def _begin(self, seconds: float) -> Connection:
        if self.connection is not None:
            self.connection.raw.patience = seconds + LOCKED
            if answers(self.connection, "BEGIN"):
                return self._locked(self.connection)
            self._let_go()
        self.connection = self.same(self._connect())
        if self._closed:
            raise failures.closed_ledger(self._place)
        self.connection.raw.patience = seconds + LOCKED
        self.connection.execute("SELECT pg_advisory_lock(?)", (self._key,))
        self.connection.execute("BEGIN")
        return self._locked(self.connection)

    def _locked(self, connection: Connection) -> Connection:
        [(version,)] = connection.execute(
            "SELECT value FROM meta WHERE key = 'version' FOR UPDATE"
        ).fetchall()
        if is_old(self._place, version):
            raise failures.rolled_back(self._place)
        return connection

    def _interrupt(self) -> None:
        if self.connection is not None:
            self.connection.raw.end()

    def _roll_back(self) -> None:
        if self.connection is not None:
            with suppress(psycopg.Error):
                self.connection.raw.rollback()

    def _let_go(self) -> None:
        if self.connection is not None:
            self.connection.raw.close()
        self.connection = None

    def _said(self, error: Exception) -> LedgerFailed:
        return postgres_failures.from_postgres(self._name, error)


def answers(connection: Connection, begin: str) -> bool:
    """Begin a transaction. False if the server went away since the last one: connect again."""
    try:
        connection.execute(begin)
    except postgres_failures.Hung:
        raise
    except psycopg.OperationalError:
        return False
    return True


_MOMENT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


def place_name(dsn: str, schema: str) -> str:
    """The name of a ledger on a server in messages: only host and database of the dsn, and schema.

    >>> place_name("host=db.example.org dbname=budgets user=dpsql", "dpsql")
    'db.example.org/budgets/dpsql'
    """
    try:
        parts = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise LedgerFailed(
            "has a dsn that cannot be read", "write host=.. dbname=.. user=.."
        ) from None
    host, database = parts.get("host") or "localhost", parts.get("dbname") or "default"
    return f"{host}/{database}/{schema}"
