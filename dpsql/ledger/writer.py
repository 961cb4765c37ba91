"""One connection that writes, for all threads: whoever waits shares the next commit.

A commit waits for the disk (milliseconds), and SQLite admits one writer at a time. So each caller
puts its work into a queue and then waits for the lock; who gets the lock does everything that is
in the queue in one transaction, and the others find their work done. Nobody returns before the
commit that holds its work is durable. Work that fails is undone alone (a savepoint); when SQLite
itself fails, all of the transaction is undone and every caller in it is told.

Other processes wait by asking again every millisecond. SQLite's own waiting sleeps up to a tenth
of a second, in which a busy neighbour takes the lock hundreds of times: some would starve.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from dpsql.ledger import failures

T = TypeVar("T")
SHARED = 64
"""The most pieces of work in one transaction: no long transactions."""
PAUSE = 0.001
"""Seconds between two attempts while another process writes."""


class _Work(Generic[T]):
    __slots__ = ("error", "ready", "result", "task")

    def __init__(self, task: Callable[[sqlite3.Connection], T]) -> None:
        self.task, self.ready = task, False
        self.result: T | None = None
        self.error: Exception | None = None

    def try_on(self, connection: sqlite3.Connection) -> None:
        connection.execute("SAVEPOINT work")
        try:
            self.result, self.error = self.task(connection), None
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001  it is raised by the thread whose work it is
            self.error = error
            connection.execute("ROLLBACK TO work")
        connection.execute("RELEASE work")


class Writer:
    """Runs work in transactions on a connection it owns."""

    def __init__(self, connection: sqlite3.Connection, path: Path, wait: float) -> None:
        self.connection, self._path, self._wait = connection, path, wait
        self.connection.execute("PRAGMA busy_timeout = 0")
        self._lock, self._queue = threading.Lock(), deque[_Work[object]]()
        self._closed = False

    def run(self, task: Callable[[sqlite3.Connection], T]) -> T:
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
            self.connection.close()

    def _share(self) -> int:
        return min(len(self._queue), SHARED)

    def _transact(self, batch: list[_Work[object]]) -> None:
        error: Exception = failures.interrupted(self._path)
        durable = False
        try:
            if self._closed:
                error = failures.closed(self._path)
                return
            self._begin()
            for work in batch:
                work.try_on(self.connection)
            self.connection.execute("COMMIT")
            durable = True
        except sqlite3.Error as failed:
            error = failures.from_sqlite(self._path, failed)
        finally:
            if not durable:
                self._roll_back()
            for work in batch:
                work.ready = True
                if not durable:
                    work.error = error

    def _begin(self) -> None:
        deadline = time.monotonic() + self._wait
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

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            if self.connection.in_transaction:
                self.connection.rollback()
