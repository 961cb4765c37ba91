"""The default ledger: one SQLite file, safe for several threads and processes.

Every change is one transaction that is on the disk before the call returns (write-ahead log,
``synchronous=FULL``). One connection writes (threads share commits, see ``writer.py``), another
reads, so a recall does not wait for the disk. Balances are kept as sums, so a look-up does not
grow with what happened before.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from dpsql.ledger import failures, owner, schema
from dpsql.ledger.rows import Database
from dpsql.ledger.store import Clock
from dpsql.ledger.tables import TableLedger
from dpsql.ledger.writer import SqliteWriter

T = TypeVar("T")


class SqliteLedger(TableLedger):
    """A ledger in a file."""

    def __init__(self, path: Path, clock: Clock, wait: float) -> None:
        """Use ``open``; this only fits the parts together."""
        self.place = self.path = path
        self._clock, self._wait = clock, wait
        self._file = _identity(path)
        self._writer = SqliteWriter(schema.connect(path, wait), path, wait)
        try:
            self._reader = schema.connect(path, wait)
        except BaseException:
            self._writer.close()
            raise
        self._reading, self._process = threading.Lock(), os.getpid()
        self._owner, self._closed = owner.enlist(), False

    @classmethod
    def open(cls, path: Path | str, clock: Clock, *, wait: float = 10.0) -> SqliteLedger:
        """The ledger at ``path``, made if there is none; ``wait`` seconds for other processes.

        Holds of processes that have ended are settled: they stay spent.
        """
        path = Path(path).absolute()
        try:
            exists = path.exists()
        except OSError as error:
            raise failures.from_system(path, error) from None
        if not exists:
            schema.create(path)
        ledger = cls(path, clock, wait)
        try:
            ledger._write(ledger._settle)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def close(self) -> None:
        """Let go of the file. Holds that are still open stay spent."""
        if os.getpid() != self._process:
            return  # the parent's: closing it here would disturb the parent
        owner.retire(self._owner)
        self._writer.close()
        with self._reading:
            self._closed = True
            self._reader.close()

    def _write(self, task: Callable[[Database], T]) -> T:
        self._check_file()
        try:
            return self._writer.run(task)
        except (TypeError, ValueError):
            raise failures.damaged(self.path) from None

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        self._check_file()
        with self._reading:
            if self._closed:
                raise failures.closed(self.path)
            try:
                self._reader.execute("BEGIN")
                yield self._reader
            except sqlite3.Error as error:
                raise failures.from_sqlite(self.path, error) from None
            finally:
                self._reader.rollback()

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """On a connection of its own."""
        self._check_file()
        with closing(schema.connect(self.path, self._wait)) as db:
            try:
                db.execute("BEGIN")
                yield db
            except sqlite3.Error as error:
                raise failures.from_sqlite(self.path, error) from None

    def _gone(self, db: Database, name: str, age: timedelta) -> bool:  # noqa: ARG002
        return owner.gone(name, age)

    def _integrity(self, db: Database) -> list[str]:
        found = [str(row[0]) for row in db.execute("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def _check_file(self) -> None:
        """The file is the one that was opened, by this process: else writing to it is no use."""
        if os.getpid() != self._process:
            raise failures.forked(self.path)
        if _identity(self.path) != self._file:
            raise failures.replaced(self.path)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
