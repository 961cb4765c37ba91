"""One connection that writes for all threads; callers that wait share the next commit.

A commit waits for the disk (milliseconds), and a ledger admits one writer at a time. So each caller
puts its work into a queue and then waits for the lock. The caller that gets the lock does all work
in the queue in one transaction, and the others find their work done. No caller returns before the
commit with its work is durable. Work that fails is undone alone (by a savepoint). If the database
itself fails, the whole transaction is undone, and every caller in it gets the error. If a
transaction had to wait for too long, the callers in the queue have waited too, and get the same
error.

Each transaction first looks for the last record of the transaction before it; the first transaction
looks for the record that was noted elsewhere. If that record is missing, the ledger is an older
copy, and nothing is written.

A process waits for the file by trying again every millisecond. SQLite's own waiting sleeps up to a
tenth of a second, in which a busy process can take the lock hundreds of times, so some processes
would starve.
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
from dpsql.ledger import failures, rows
from dpsql.ledger.head import EMPTY, Head, HeadNote
from dpsql.ledger.migrate import is_old
from dpsql.ledger.open_file import OpenFile
from dpsql.ledger.rows import Database

T = TypeVar("T")
SHARED = 64
"""The most pieces of work in one transaction, so that transactions stay short."""
PATIENCE = 2.0
"""Seconds for which closing waits for a transaction under way."""
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
        except Exception as error:  # noqa: BLE001  the thread that queued the work raises it
            self.error = error
            connection.execute("ROLLBACK TO work")
        connection.execute("RELEASE work")


class Writer(abc.ABC):
    """Runs work in transactions on its own connection."""

    fatal: ClassVar[type[Exception]]
    """The errors of the database: they lose the transaction, with all work in it."""

    def __init__(self, place: failures.Place, wait: float, note: HeadNote | None) -> None:
        self._place, self._wait, self._note = place, wait, note
        self._head = EMPTY if note is None else note.read()
        self._lock, self._queue = threading.Lock(), deque[_Work[object]]()
        self._closed = False

    def run(self, task: Callable[[Database], T]) -> T:
        """Run ``task``; returns its result once it is durable. If it raises, it is undone."""
        work = _Work(task)
        self._queue.append(work)  # type: ignore[arg-type]
        while not work.ready:
            with self._lock:
                if not work.ready:
                    self._transact([self._queue.popleft() for _ in range(self._share())])
        if work.error is not None:
            raise work.error
        return work.result  # type: ignore[return-value]

    def probe(self, seconds: float) -> None:
        """Raise unless a write without effect is durable within these seconds."""
        if not self._lock.acquire(timeout=seconds):
            raise failures.slow(self._place, seconds)
        try:
            work = _Work(rows.touch)
            self._transact([work], seconds)  # type: ignore[list-item]
        finally:
            self._lock.release()
        if work.error is not None:
            raise work.error

    def close(self) -> None:
        """Close the connection, after the transaction under way; later work fails."""
        self._closed = True
        self._interrupt()
        if self._lock.acquire(timeout=PATIENCE):
            try:
                self._let_go()
            finally:
                self._lock.release()

    @abc.abstractmethod
    def _interrupt(self) -> None:
        """End a transaction under way that may hang; the transaction closes the connection."""

    @abc.abstractmethod
    def _begin(self, seconds: float) -> Database:
        """Begin a transaction in which nobody else writes; returns its connection.

        Other writers are waited for, at most this many seconds.
        """

    @abc.abstractmethod
    def _roll_back(self) -> None:
        """Undo the transaction, if there is one."""

    @abc.abstractmethod
    def _let_go(self) -> None:
        """Close the connection."""

    @abc.abstractmethod
    def _said(self, error: Exception) -> LedgerFailed:
        """The database's error as a ``LedgerFailed``."""

    def _share(self) -> int:
        return min(len(self._queue), SHARED)

    def _transact(self, batch: list[_Work[object]], seconds: float | None = None) -> None:
        error: Exception | None = failures.interrupted_write(self._place)
        end = time.monotonic() + (self._wait if seconds is None else seconds)
        try:
            if self._closed:
                error = failures.closed_ledger(self._place)
                return
            connection = self._begin(self._wait if seconds is None else seconds)
            self._continue(connection)
            for work in batch:
                work.try_on(connection, self.fatal)
            head = Head.of(rows.head(connection))
            connection.execute("COMMIT")
            self._remember(head)
            error = None
        except self.fatal as failed:
            error = self._said(failed)
        except LedgerFailed as failed:
            error = failed
        finally:
            if error is not None:
                self._roll_back()
            if self._closed:
                self._let_go()
            if error is not None and seconds is None and time.monotonic() >= end:
                batch += [self._queue.popleft() for _ in range(len(self._queue))]
            for work in batch:
                work.ready = True
                work.error = error or work.error

    def _continue(self, db: Database) -> None:
        """Raise unless the ledger still has the last record of the transaction before."""
        if self._head.seq and rows.hash_of(db, self._head.seq) != self._head.hash:
            raise failures.rolled_back(self._place)

    def _remember(self, head: Head) -> None:
        """Note the last record of a transaction that is durable now."""
        if self._note is not None and head != self._head:
            self._note.write(head)
        self._head = head


class SqliteWriter(Writer):
    """The connection that writes to a file."""

    fatal: ClassVar[type[Exception]] = sqlite3.Error

    def __init__(
        self, connection: sqlite3.Connection, path: Path, wait: float, note: HeadNote | None
    ) -> None:
        super().__init__(path, wait, note)
        self.connection, self._path, self._file = connection, path, OpenFile(path)
        self.connection.execute("PRAGMA busy_timeout = 0")

    def check(self) -> None:
        """Raise unless the file is the one that was opened."""
        self._file.check()

    def _begin(self, seconds: float) -> sqlite3.Connection:
        self._alone(seconds)
        self._file.check_content(self.connection)  # from now on a restore waits for this one
        if is_old(self._path, rows.meta(self.connection).get("version")):
            raise failures.rolled_back(self._path)
        return self.connection

    def _alone(self, seconds: float) -> None:
        """Begin a transaction that writes; other writers are waited for."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if time.monotonic() > deadline:
                    raise
            time.sleep(PAUSE)

    def _interrupt(self) -> None:
        """Do nothing: a transaction ends by itself, and soon."""

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            if self.connection.in_transaction:
                self.connection.rollback()

    def _remember(self, head: Head) -> None:
        super()._remember(head)
        with suppress(
            sqlite3.Error, OSError, LedgerFailed
        ):  # the transaction is durable; if copying fails, the log only grows
            self._file.copy_log(self.connection, lambda: self._alone(self._wait))
        self._roll_back()

    def _let_go(self) -> None:
        self.connection.close()

    def _said(self, error: Exception) -> LedgerFailed:
        assert isinstance(error, sqlite3.Error)
        return failures.from_sqlite(self._path, error)
