"""The failures of a ledger, described for the person who can repair it."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path

from dpsql.diagnostics.quote import place as named
from dpsql.diagnostics.refusal import LedgerFailed

Place = Path | str
"""A ledger's file, or the name of the server that keeps it."""
UNREADABLE = (AttributeError, LookupError, OverflowError, TypeError, ValueError)
"""The errors that may be raised by reading values that dpsql did not write."""
NOTHING_LOST = "nothing was answered, and what was spent is still recorded"

RESTORE = "stop dpsql and run dpsql ledger restore with the latest backup; it keeps what is there"
RESTORE_SERVER = (
    "stop dpsql, restore the schema from a backup of the server, then run dpsql ledger restore"
)
_CHANGED = ("is damaged, or was changed by something other than dpsql", RESTORE)

_ANOTHER_FILE = (
    "correct the ledger's path in the policy, or run dpsql ledger restore with the latest backup"
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
    sqlite3.SQLITE_ERROR: _CHANGED,
    sqlite3.SQLITE_CONSTRAINT: _CHANGED,
    sqlite3.SQLITE_MISMATCH: _CHANGED,
    sqlite3.SQLITE_TOOBIG: _CHANGED,
    sqlite3.SQLITE_NOTADB: (
        "is damaged, or is not a ledger (nor any SQLite file)",
        _ANOTHER_FILE,
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened",
        "check that its directory exists and may be written by the account that runs dpsql",
    ),
}


class LedgerDamaged(LedgerFailed):
    """A ledger whose contents are not as dpsql wrote them."""


_DAMAGED = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_NOTADB,
}


def from_sqlite(path: Path, error: sqlite3.Error) -> LedgerFailed:
    """SQLite's error as a ``LedgerFailed``. Its text is dropped: the code is enough to act on."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    wrong, instead = _SQLITE.get(code, ("cannot be used", "run dpsql audit on it"))
    kind = LedgerDamaged if code in _DAMAGED else LedgerFailed
    return kind(wrong, instead, place=path)


def from_system(path: Path, error: OSError) -> LedgerFailed:
    """The operating system's refusal to create or open the file."""
    reason = error.strerror or type(error).__name__
    return LedgerFailed(
        "cannot be opened",
        "check that its directory exists, is on a local disk, and may be written by the account "
        "that runs dpsql",
        place=path,
        detail=reason,
    )


def read_only(path: Path) -> LedgerFailed:
    """A file that this user may not write."""
    wrong, instead = _READ_ONLY
    return LedgerFailed(wrong, instead, place=path)


def not_a_ledger(path: Path) -> LedgerFailed:
    """Some other SQLite database, or an empty file (a ledger is never empty)."""
    return LedgerDamaged("is damaged, or is not a ledger file", _ANOTHER_FILE, place=path)


def damaged_ledger(path: Place) -> LedgerFailed:
    """A file with contents that dpsql did not write."""
    return LedgerDamaged(
        "is damaged: it holds values that dpsql did not write", _way_out(path), place=path
    )


def newer(path: Place, version: str) -> LedgerFailed:
    """A file that a later dpsql wrote."""
    return LedgerFailed(
        "has a version that this dpsql does not know",
        "run the version of dpsql that wrote it, or a later one",
        place=path,
        detail=version,
    )


def no_wal(path: Path) -> LedgerFailed:
    """A file system on which SQLite cannot share memory between processes."""
    return LedgerFailed(
        "is on a file system without write-ahead logging", "move it to a local disk", place=path
    )


def clock_back(path: Place, latest: datetime, now: datetime) -> LedgerFailed:
    """A clock before the ledger's last entry: budgets of past windows must not open again."""
    return LedgerFailed(
        "was last written at a later time than the clock says",
        "set the clock if it is wrong; if it is right and was wrong before, run dpsql ledger repair",
        place=path,
        detail=f"at {latest:%Y-%m-%d %H:%M:%S %Z}; the clock says {now:%Y-%m-%d %H:%M:%S %Z}",
    )


def other_dataset(path: Place, owner: str, asked: str) -> LedgerFailed:
    """A ledger that belongs to another policy file."""
    return LedgerFailed(
        "belongs to another policy file",
        "give the policy its old file name again, or name another ledger in it",
        place=path,
        detail=f'to "{owner}", not to "{asked}"',
    )


def forked_ledger(path: Place) -> LedgerFailed:
    """An open ledger carried across a fork."""
    return LedgerFailed(
        "was opened before this process was forked", "open the ledger in each process", place=path
    )


def replaced_file(path: Place) -> LedgerFailed:
    """A file that was removed, or another in its place, while it was open."""
    return LedgerFailed(
        "was removed or replaced while it was open",
        "stop dpsql and put the file back, since it knows what was spent; where it is lost, run "
        "dpsql ledger restore",
        place=path,
    )


def closed_ledger(path: Place) -> LedgerFailed:
    """A ledger used after close."""
    return LedgerFailed("is closed", "open it again", place=path)


def wrong_move(path: Place, hold: int, now: str, then: str) -> LedgerFailed:
    """A hold that cannot move to the state that the caller asks for."""
    return LedgerFailed(
        "has a charge in another state than dpsql expects",
        "ask again; what was charged stays charged",
        place=path,
        detail=f"hold {hold} is {now}, so it cannot become {then}",
    )


def interrupted_write(path: Place) -> LedgerFailed:
    """The thread that wrote for several callers was stopped."""
    return LedgerFailed("was interrupted while writing", "ask again", place=path)


def rolled_back(path: Place) -> LedgerFailed:
    """A ledger without records that this process saw there, or that were noted elsewhere."""
    return LedgerFailed(
        "is an older copy: records that were written are missing",
        "stop dpsql and put the newer one back; where it is lost, run dpsql ledger restore",
        place=path,
    )


def restore_interrupted(path: Place) -> LedgerFailed:
    """A restore was killed while it replaced a damaged file."""
    return LedgerDamaged(
        "is missing: a restore was interrupted",
        "run the same dpsql ledger restore again; the damaged file is kept beside it",
        place=path,
    )


def missing_ledger(path: Place) -> LedgerFailed:
    """There is no ledger, although the policy says that it must exist."""
    return LedgerFailed(
        "does not exist, and the policy says that it must",
        "run dpsql ledger restore with the latest backup; only for a new data set, serve once "
        "without `must_exist`",
        place=path,
    )


def slow(path: Place, seconds: float) -> LedgerFailed:
    """A store that did not answer in time."""
    return LedgerFailed(
        "did not answer in time",
        f"check its server, disk and network; {NOTHING_LOST}",
        place=path,
        detail=f"not within {seconds:g} seconds",
    )


def head_unnoted(path: Place, file: Path, reason: str) -> LedgerFailed:
    """The last hash could not be written to the file that the policy names for it."""
    return LedgerFailed(
        "has a head that cannot be noted",
        f"give the account that runs dpsql write permission there, or free some space; {NOTHING_LOST}",
        place=path,
        detail=f"{named(file)}: {reason}",
    )


def head_unread(file: Path, reason: str) -> LedgerFailed:
    """A note of the last hash that cannot be read."""
    return LedgerFailed(
        "has a noted head that cannot be read",
        "put back what was there; if that is lost, compare the ledger with its latest backup and "
        "delete the file, which is then written anew",
        detail=f"{named(file)}: {reason}",
    )


def unsound(path: Place, problem: str) -> LedgerFailed:
    """A ledger, or a copy of one, whose parts do not fit together."""
    return LedgerDamaged("is damaged", _way_out(path), place=path, detail=problem)


def _way_out(path: Place) -> str:
    return RESTORE if isinstance(path, Path) else RESTORE_SERVER
