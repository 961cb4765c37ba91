"""The default ledger: one SQLite file, safe for several threads and processes.

Every change is one transaction that is on the disk before the call returns (write-ahead log,
``synchronous=FULL``). One connection writes (threads share commits, see ``writer.py``), and another
reads, so a recall does not wait for the disk. Balances are stored as sums, so the time to read one
does not grow with the history.
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
from dpsql.ledger.head import HeadNote
from dpsql.ledger.rows import Database
from dpsql.ledger.store import Clock
from dpsql.ledger.tables import TableLedger
from dpsql.ledger.writer import SqliteWriter

T = TypeVar("T")


class SqliteLedger(TableLedger):
    """A ledger in a file."""

    def __init__(self, path: Path, clock: Clock, wait: float, note: HeadNote | None) -> None:
        """Use ``open`` instead; this only sets the attributes."""
        self.place = self.path = path
        self._clock, self._wait = clock, wait
        first = schema.connect_file(path, wait)
        try:
            self._reader = schema.connect_file(path, wait)
            self._writer = SqliteWriter(first, path, wait, note)
        except BaseException:
            first.close()
            raise
        self._reading, self._process = threading.Lock(), os.getpid()
        self._owner, self._closed = owner.enlist(), False

    @classmethod
    def open(
        cls,
        path: Path | str,
        clock: Clock,
        *,
        wait: float = 10.0,
        head: Path | None = None,
        settle: bool = True,
        must_exist: bool = False,
    ) -> SqliteLedger:
        """The ledger at ``path``; it is created if there is none, unless ``must_exist``.

        Holds of processes that have ended are settled: they stay spent. Without ``settle`` they are
        left alone, for callers that only read or repair. Other processes are waited for, at most
        ``wait`` seconds. ``head`` is the file for ``HeadNote``.
        """
        path = Path(path).absolute()
        try:
            exists = path.exists() or path.is_symlink()
        except OSError as error:
            raise failures.from_system(path, error) from None
        if not exists and must_exist:
            raise failures.missing_ledger(path)
        if not exists:
            schema.create(path)
        ledger = cls(path, clock, wait, None if head is None else HeadNote(head, path))
        try:
            if settle:
                ledger._write(ledger._settle)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def close(self) -> None:
        """Close the file. Holds that are still open stay spent."""
        if os.getpid() != self._process:
            return  # the file is the parent's: closing it here would disturb the parent
        self._closed = True
        owner.retire(self._owner)
        self._writer.close()
        with self._reading:
            self._reader.close()

    def _write(self, task: Callable[[Database], T]) -> T:
        self._check()
        try:
            return self._writer.run(task)
        except failures.UNREADABLE:
            raise failures.damaged_ledger(self.path) from None

    def probe(self, seconds: float = 2.0) -> None:
        """Raise ``LedgerFailed`` unless a change is durable within these seconds."""
        self._check()
        self._writer.probe(seconds)

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        self._check()
        with self._reading:
            self._check_open()
            try:
                self._reader.execute("BEGIN")
                yield self._reader
            except sqlite3.Error as error:
                raise failures.from_sqlite(self.path, error) from None
            except failures.UNREADABLE:
                raise failures.damaged_ledger(self.path) from None
            finally:
                self._reader.rollback()

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """One moment of the ledger, on a connection of its own."""
        self._check()
        with closing(schema.connect_file(self.path, self._wait)) as db:
            try:
                db.execute("BEGIN")
                yield db
            except sqlite3.Error as error:
                raise failures.from_sqlite(self.path, error) from None
            except failures.UNREADABLE:
                raise failures.damaged_ledger(self.path) from None

    def _gone(self, db: Database, name: str, age: timedelta) -> bool:  # noqa: ARG002
        return owner.has_ended(name, age)

    def _integrity(self, db: Database) -> list[str]:
        found = [str(row[0]) for row in db.execute("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def _bytes(self, db: Database) -> int:  # noqa: ARG002
        """The size of the file, and of the log that is not copied into it yet."""
        files = self.path, self.path.with_name(f"{self.path.name}-wal")
        return sum(file.stat().st_size for file in files if file.exists())

    def _check(self) -> None:
        if os.getpid() != self._process:
            raise failures.forked_ledger(self.path)
        self._check_open()
        self._writer.check()

    def _check_open(self) -> None:
        if self._closed:
            raise failures.closed_ledger(self.path)
