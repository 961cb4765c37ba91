"""One connection that writes, for all threads: whoever waits shares the next commit.

A commit waits for the disk (milliseconds), and a ledger admits one writer at a time. So each caller
puts its work into a queue and then waits for the lock; who gets the lock does everything that is
in the queue in one transaction, and the others find their work done. Nobody returns before the
commit that holds its work is durable. Work that fails is undone alone (a savepoint); when the
database itself fails, all of the transaction is undone and every caller in it is told.

Other processes wait for a file by asking again every millisecond. SQLite's own waiting sleeps up to
a tenth of a second, in which a busy neighbour takes the lock hundreds of times: some would starve.
"""

from __future__ import annotations

import abc
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger import failures
from dpsql.ledger.rows import Database

T = TypeVar("T")
SHARED = 64
"""The most pieces of work in one transaction: no long transactions."""
PAUSE = 0.001
"""Seconds between two attempts while another process writes."""


class _Work(Generic[T]):
    __slots__ = ("error", "ready", "result", "task")

    def __init__(self, task: Callable[[Database], T]) -> None:
        self.task, self.ready = task, False
        self.result: T | None = None
        self.error: Exception | None = None

    def try_on(self, connection: Database, fatal: type[Exception]) -> None:
        connection.execute("SAVEPOINT work")
        try:
            self.result, self.error = self.task(connection), None
        except fatal:
            raise
        except Exception as error:  # noqa: BLE001  it is raised by the thread whose work it is
            self.error = error
            connection.execute("ROLLBACK TO work")
        connection.execute("RELEASE work")


class Writer(abc.ABC):
    """Runs work in transactions on a connection it owns."""

    fatal: ClassVar[type[Exception]]
    """What the database raises: the transaction is lost, with all work in it."""

    def __init__(self, place: failures.Place) -> None:
        self._place = place
        self._lock, self._queue = threading.Lock(), deque[_Work[object]]()
        self._closed = False

    def run(self, task: Callable[[Database], T]) -> T:
        """What ``task`` returns, once it is durable. Raises what it raises, with it undone."""
        work = _Work(task)
        self._queue.append(work)  # type: ignore[arg-type]
        while not work.ready:
            with self._lock:
                if not work.ready:
                    self._transact([self._queue.popleft() for _ in range(self._share())])
        if work.error is not None:
            raise work.error
        return work.result  # type: ignore[return-value]

    def close(self) -> None:
        """Close the connection, after the transaction under way; later work fails."""
        with self._lock:
            self._closed = True
            self._let_go()

    @abc.abstractmethod
    def _begin(self) -> Database:
        """Begin a transaction in which nobody else writes; the connection it is on."""

    @abc.abstractmethod
    def _roll_back(self) -> None:
        """Undo the transaction, if there is one."""

    @abc.abstractmethod
    def _let_go(self) -> None:
        """Close the connection."""

    @abc.abstractmethod
    def _said(self, error: Exception) -> LedgerFailed:
        """The database's error as ours."""

    def _share(self) -> int:
        return min(len(self._queue), SHARED)

    def _transact(self, batch: list[_Work[object]]) -> None:
        error: Exception = failures.interrupted(self._place)
        durable = False
        try:
            if self._closed:
                error = failures.closed(self._place)
                return
            connection = self._begin()
            for work in batch:
                work.try_on(connection, self.fatal)
            connection.execute("COMMIT")
            durable = True
        except self.fatal as failed:
            error = self._said(failed)
        except LedgerFailed as failed:
            error = failed
        finally:
            if not durable:
                self._roll_back()
            for work in batch:
                work.ready = True
                if not durable:
                    work.error = error


class SqliteWriter(Writer):
    """The connection that writes to a file."""

    fatal: ClassVar[type[Exception]] = sqlite3.Error

    def __init__(self, connection: sqlite3.Connection, path: Path, wait: float) -> None:
        super().__init__(path)
        self.connection, self._path, self._wait = connection, path, wait
        self.connection.execute("PRAGMA busy_timeout = 0")

    def _begin(self) -> sqlite3.Connection:
        deadline = time.monotonic() + self._wait
        while True:
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                return self.connection
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if time.monotonic() > deadline:
                    raise
            time.sleep(PAUSE)

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            if self.connection.in_transaction:
                self.connection.rollback()

    def _let_go(self) -> None:
        self.connection.close()

    def _said(self, error: Exception) -> LedgerFailed:
        assert isinstance(error, sqlite3.Error)
        return failures.from_sqlite(self._path, error)
