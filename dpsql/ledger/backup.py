"""Copies of a ledger file: how they are made while the ledger is in use, and how they are read."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger import failures, schema
from dpsql.ledger.rows import Database
from dpsql.ledger.store import Verification
from dpsql.ledger.tables import examine


def back_up(path: Path, target: Path, wait: float = 10.0) -> Verification:
    """Copy the ledger at ``path`` into one new file; returns the verification of the sound copy.

    The copy is the state of the ledger at one moment: SQLite copies the file and its log, while
    others go on writing. It is made under another name beside ``target``, verified, made durable,
    and only then linked. If the process is killed at any point, ``target`` is complete or does not
    exist.
    """
    new = target.with_name(f".{target.name}.{secrets.token_hex(8)}.new")
    with closing(schema.connect_file(path, wait)) as source:
        try:
            os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            try:
                found = _copy(source, path, new)
                target.hardlink_to(new)
            finally:
                new.unlink()
            schema.sync(target.parent)
        except FileExistsError:
            raise LedgerFailed(
                "exists already",
                "name another file; nothing was written",
                place=target,
                subject="the backup",
            ) from None
        except OSError as error:
            raise _unwritten(target, error.strerror or type(error).__name__) from None
    return found


def _copy(source: sqlite3.Connection, path: Path, new: Path) -> Verification:
    with closing(sqlite3.connect(new, isolation_level=None)) as copy:
        try:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # so that one file is the whole copy
        except sqlite3.OperationalError as error:
            code = error.sqlite_errorcode & 0xFF
            if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                raise _unwritten(new, "the disk is full or reports an error") from None
            raise failures.from_sqlite(path, error) from None
        except sqlite3.Error as error:
            raise failures.from_sqlite(path, error) from None
        found = examine_copy(copy, path)
    handle = os.open(new, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return found


@contextmanager
def open_copy(file: Path) -> Iterator[sqlite3.Connection]:
    """A backup, or any copy of a ledger file, opened as a temporary database.

    The database is verified to be sound and migrated to the current version; the file is not
    changed.
    """
    log = file.with_name(file.name + "-wal")
    alone = "" if log.exists() and log.stat().st_size else "&immutable=1"
    with closing(sqlite3.connect("", isolation_level=None)) as copy:
        try:
            if not file.is_file():
                raise LedgerFailed(
                    "does not exist",
                    "name the file of a backup",
                    place=file,
                    subject="the backup",
                )
            source = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro{alone}", uri=True)
            with closing(source):
                source.backup(copy)
            schema.check(copy, file)
        except sqlite3.Error as error:
            raise failures.from_sqlite(file, error) from None
        copy.execute("BEGIN")
        examine_copy(copy, file)
        yield copy


def examine_copy(copy: Database, path: Path) -> Verification:
    """Verify a copy. Raises unless it is sound."""
    try:
        integrity = [str(row[0]) for row in copy.execute("PRAGMA integrity_check")]
        found = examine(copy, [] if integrity == ["ok"] else integrity)
    except sqlite3.Error as error:
        raise failures.from_sqlite(path, error) from None
    except failures.UNREADABLE:
        raise failures.damaged_ledger(path) from None
    if not found.sound:
        raise failures.unsound(path, found.problems[0])
    return found


def _unwritten(target: Path, reason: str) -> LedgerFailed:
    return LedgerFailed(
        "cannot be written",
        "choose a directory that exists, may be written, and has room; the ledger is as it was",
        place=target,
        detail=reason,
        subject="the backup",
    )
