"""Checks that the file of an open ledger is still the one that was opened, and unchanged by others.

SQLite itself does not notice when its file is removed, replaced, or overwritten with an older copy.
So before each use, the identities of the file and of its log are compared with those at opening. In
each transaction that writes, the file's size and time are compared with those of the transaction
before.

Only copying the log into the file (a checkpoint) changes the file. Ledgers copy the log themselves
(SQLite's automatic checkpoints are off), while no other process writes. A number, which is written
through the log, counts the copies: an odd number announces a copy, and the next even number says
that it is done. So a file that was changed without a larger number, and without an announced copy,
was changed by something else. Older copies that were put back through SQLite are found by their
records: see ``Writer``.

Nothing here opens the file: closing it again would release SQLite's locks of this process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from dpsql.ledger import failures, schema

LOG_BYTES = 4_000_000
"""A log of at least this size is copied into the file."""


class OpenFile:
    """The file of a ledger and its log, with their identities when this object was created."""

    def __init__(self, path: Path) -> None:
        """Must be created after the file was opened, so that the log exists."""
        self._path, self._log = path, path.with_name(path.name + "-wal")
        self._known = _identity(path), _identity(self._log)
        self._written: tuple[int, int] | None = None
        self._copies = self._least = 0
        self._announced = False

    def check(self) -> None:
        """Raise if the names lead to other files now."""
        if (_identity(self._path), _identity(self._log)) != self._known:
            raise failures.replaced_file(self._path)

    def check_content(self, connection: sqlite3.Connection) -> None:
        """Raise if something else wrote to the file; call it inside a transaction that writes."""
        self.check()
        written = self._state()
        if written == self._written:
            return
        copies = _copies(connection)
        larger = copies > self._copies
        if self._written is not None and not larger and not self._announced:
            raise failures.replaced_file(self._path)
        self._announced = larger and _announces(copies)  # one copy for each number
        self._written, self._copies = written, copies

    def copy_log(self, connection: sqlite3.Connection, begin: Callable[[], None]) -> None:
        """Copy the log into the file if it is large; ``begin`` begins a transaction that writes."""
        size = self._log.stat().st_size
        if size < LOG_BYTES:
            self._least = 0
        if size < max(LOG_BYTES, self._least):
            return
        self._least = size + LOG_BYTES  # a reader may keep the log from being reset
        begin()
        copies = _copies(connection)
        number = copies + (2 if _announces(copies) else 1)
        connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
        begin()  # so that no process checks the file while it is being written
        if _copies(connection) != number:  # another process is about to copy
            connection.execute("ROLLBACK")
            return
        with closing(schema.connect_file(self._path, 0)) as copier:
            copier.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        written = self._state()
        connection.execute(f"PRAGMA user_version = {number + 1}")
        connection.execute("COMMIT")
        self._written, self._copies, self._announced = written, number + 1, False

    def _state(self) -> tuple[int, int]:
        """The file's size and time, which change when the file is written to."""
        found = self._path.stat()
        return found.st_size, found.st_mtime_ns


def _copies(connection: sqlite3.Connection) -> int:
    """The number that counts copies of the log."""
    [number] = connection.execute("PRAGMA user_version").fetchone()
    return int(number)


def _announces(copies: int) -> bool:
    """Whether a copy was announced and not reported as done; its process may have ended."""
    return copies % 2 == 1


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
