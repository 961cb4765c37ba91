"""One connection that writes, for all threads: whoever waits shares the next commit.

A commit waits for the disk (milliseconds), and a ledger admits one writer at a time. So each caller
puts its work into a queue and then waits for the lock; who gets the lock does everything that is
in the queue in one transaction, and the others find their work done. Nobody returns before the
commit that holds its work is durable. Work that fails is undone alone (a savepoint); when the
database itself fails, all of the transaction is undone and every caller in it is told. When it has
let a transaction wait for too long, those in the queue have waited too, and are told together.

Each transaction first looks for the record that was last when the one before it ended, and at first
for the one that was noted elsewhere: without it, the ledger is an older copy, and nothing is written.

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
from dpsql.ledger import failures, rows
from dpsql.ledger.head import EMPTY, Head, HeadNote
from dpsql.ledger.migrate import is_old
from dpsql.ledger.open_file import OpenFile
from dpsql.ledger.rows import Database

T = TypeVar("T")
SHARED = 64
"""The most pieces of work in one transaction: no long transactions."""
PATIENCE = 2.0
"""Seconds that closing waits for a transaction under way."""
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

    def __init__(self, place: failures.Place, wait: float, note: HeadNote | None) -> None:
        self._place, self._wait, self._note = place, wait, note
        self._head = EMPTY if note is None else note.read()
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

    def probe(self, seconds: float) -> None:
        """Raise unless a change that changes nothing is durable within these seconds."""
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
        """End a transaction under way that may hang; it lets go of the connection itself."""

    @abc.abstractmethod
    def _begin(self, seconds: float) -> Database:
        """Begin a transaction in which nobody else writes; the connection it is on.

        Others that write are waited for, this long.
        """

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
        """Raise unless the ledger has what it had when the last transaction ended."""
        if self._head.seq and rows.hash_of(db, self._head.seq) != self._head.hash:
            raise failures.rolled_back(self._place)

    def _remember(self, head: Head) -> None:
        """A transaction is durable that ended with this record."""
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
        """Raise unless the file is the one that was opened: else writing to it is no use."""
        self._file.check()

    def _begin(self, seconds: float) -> sqlite3.Connection:
        self._alone(seconds)
        self._file.check_content(self.connection)  # from here on a restore waits for this
        if is_old(self._path, rows.meta(self.connection).get("version")):
            raise failures.rolled_back(self._path)
        return self.connection

    def _alone(self, seconds: float) -> None:
        """Begin a transaction that writes; others that do are waited for."""
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
        """It ends by itself, and soon."""

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            if self.connection.in_transaction:
                self.connection.rollback()

    def _remember(self, head: Head) -> None:
        super()._remember(head)
        with suppress(
            sqlite3.Error, OSError, LedgerFailed
        ):  # what was written is durable; the log only grows
            self._file.copy_log(self.connection, lambda: self._alone(self._wait))
        self._roll_back()

    def _let_go(self) -> None:
        self.connection.close()

    def _said(self, error: Exception) -> LedgerFailed:
        assert isinstance(error, sqlite3.Error)
        return failures.from_sqlite(self._path, error)
