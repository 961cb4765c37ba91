"""What can be wrong with a ledger file, in words for the person who can mend it."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path

from dpsql.diagnostics.quote import place as named
from dpsql.diagnostics.refusal import LedgerFailed

Place = Path | str
"""A ledger's file, or the name of the server that keeps it."""
NOTHING_LOST = "nothing was answered, and what was spent is still recorded"

RESTORE = (
    "stop dpsql, keep a copy of the file, and restore the latest backup; an older backup knows "
    "less than was spent, so lower the limits in the policy accordingly"
)

_READ_ONLY = (
    "cannot be written",
    "give the account that runs dpsql write permission on the file, its -wal and its directory",
)

_SQLITE: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_BUSY: (
        "is locked by another process",
        "retry; if it stays locked, find the process that holds it open",
    ),
    sqlite3.SQLITE_LOCKED: ("is locked by another connection", "retry"),
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: ("may not be opened", "check the permissions of the file"),
    sqlite3.SQLITE_FULL: (
        "cannot grow: the disk is full",
        f"free some space and retry; {NOTHING_LOST}",
    ),
    sqlite3.SQLITE_IOERR: (
        "cannot be read or written: the disk reports an error",
        f"check the disk, its space and its quotas; {NOTHING_LOST}",
    ),
    sqlite3.SQLITE_CORRUPT: ("is damaged", RESTORE),
    sqlite3.SQLITE_NOTADB: (
        "is not a ledger (nor any SQLite file)",
        "correct the ledger's path in the policy, or restore the file from a backup",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened",
        "check that its directory exists and may be written by the account that runs dpsql",
    ),
}


def from_sqlite(path: Path, error: sqlite3.Error) -> LedgerFailed:
    """SQLite's error as ours. Its own words are dropped: the code says all that can be acted on."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    wrong, instead = _SQLITE.get(
        code,
        ("cannot be used", "run dpsql audit on it; restore the latest backup if it fails"),
    )
    return LedgerFailed(f"the ledger {named(path)} {wrong}", instead)


def from_system(path: Path, error: OSError) -> LedgerFailed:
    """The operating system's refusal to create or open the file."""
    reason = error.strerror or type(error).__name__
    return LedgerFailed(
        f"the ledger {named(path)} cannot be opened: {reason}",
        "check that its directory exists, is on a local disk, and may be written by the account "
        "that runs dpsql",
    )


def read_only(path: Path) -> LedgerFailed:
    """A file that this user may not write."""
    wrong, instead = _READ_ONLY
    return LedgerFailed(f"the ledger {named(path)} {wrong}", instead)


def not_a_ledger(path: Path) -> LedgerFailed:
    """Some other SQLite database, or an empty file (a ledger is never empty)."""
    return LedgerFailed(
        f"the ledger {named(path)} is not a ledger file",
        "correct the ledger's path in the policy, or restore the file from a backup",
    )


def damaged(path: Place) -> LedgerFailed:
    """A file with contents that dpsql did not write."""
    return LedgerFailed(f"the ledger {named(path)} holds values that dpsql did not write", RESTORE)


def newer(path: Place, version: str) -> LedgerFailed:
    """A file that a later dpsql wrote."""
    return LedgerFailed(
        f"the ledger {named(path)} has version {version}, which this dpsql does not know",
        "run the version of dpsql that wrote it, or a later one",
    )


def no_wal(path: Path) -> LedgerFailed:
    """A file system on which SQLite cannot share memory between processes."""
    return LedgerFailed(
        f"the ledger {named(path)} is on a file system without write-ahead logging",
        "move it to a local disk",
    )


def clock_back(path: Place, latest: datetime, now: datetime) -> LedgerFailed:
    """A clock before the ledger's last entry: budgets of past windows must not open again."""
    return LedgerFailed(
        f"the ledger {named(path)} was last written at {latest:%Y-%m-%d %H:%M:%S %Z}, "
        f"but the clock says {now:%Y-%m-%d %H:%M:%S %Z}",
        "set the clock; dpsql answers again once it has passed the last entry",
    )


def other_dataset(path: Place, owner: str, asked: str) -> LedgerFailed:
    """A ledger that belongs to another policy file."""
    return LedgerFailed(
        f'the ledger {named(path)} belongs to the policy file "{owner}", not to "{asked}"',
        "give the policy its old file name again, or name another ledger in it",
    )


def forked(path: Place) -> LedgerFailed:
    """An open ledger carried across a fork."""
    return LedgerFailed(
        f"the ledger {named(path)} was opened before this process was forked",
        "open the ledger in each process",
    )


def replaced(path: Place) -> LedgerFailed:
    """A file that was removed, or another in its place, while it was open."""
    return LedgerFailed(
        f"the ledger {named(path)} was removed or replaced while it was open",
        "stop dpsql and put the file back: it knows what was spent",
    )


def closed(path: Place) -> LedgerFailed:
    """A ledger used after close."""
    return LedgerFailed(f"the ledger {named(path)} is closed", "open it again")


def wrong_move(path: Place, hold: int, now: str, then: str) -> LedgerFailed:
    """A hold that cannot go where the caller wants it."""
    return LedgerFailed(
        f"the ledger {named(path)} has hold {hold} as {now}, so it cannot become {then}",
        "ask again; what was charged stays charged",
    )


def interrupted(path: Place) -> LedgerFailed:
    """The thread that wrote for several callers was stopped."""
    return LedgerFailed(f"the ledger {named(path)} was interrupted while writing", "ask again")
