"""The SQLite file of a ledger: making it, opening it, and knowing it from other files."""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from dpsql.ledger import failures

APPLICATION = 0x6470_736C  # "dpsl", in the file's header
VERSION = "3"
_EFFECTIVE = os.access in os.supports_effective_ids

_TABLES = """
    CREATE TABLE meta (
        key TEXT PRIMARY KEY,                 -- version, dataset
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE account (
        id TEXT PRIMARY KEY,                  -- what was spent, for ever; limits are the policy's
        epsilon INTEGER NOT NULL CHECK (epsilon >= 0),
        delta INTEGER NOT NULL CHECK (delta >= 0),
        rho INTEGER NOT NULL CHECK (rho >= 0),
        threshold INTEGER NOT NULL CHECK (threshold >= 0)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE hold (
        id INTEGER PRIMARY KEY,
        state TEXT NOT NULL,                  -- as in states.py
        epsilon INTEGER NOT NULL CHECK (epsilon >= 0),
        delta INTEGER NOT NULL CHECK (delta >= 0),
        rho INTEGER NOT NULL CHECK (rho >= 0),
        threshold INTEGER NOT NULL CHECK (threshold >= 0),
        accounts TEXT NOT NULL,               -- JSON: the accounts debited
        policy_version TEXT NOT NULL,
        role TEXT NOT NULL,
        session TEXT NOT NULL,
        created TEXT NOT NULL,                -- UTC; never before the hold before it
        owner TEXT NOT NULL,                  -- the process, as in owner.py
        answer TEXT                           -- JSON: SHA-256 of each release stored for it
    ) STRICT;
    CREATE INDEX hold_open ON hold (id) WHERE state IN ('reserved', 'started');
    CREATE TABLE event (
        seq INTEGER PRIMARY KEY,
        hold INTEGER NOT NULL,
        json TEXT NOT NULL,
        prev_hash TEXT NOT NULL,
        hash TEXT NOT NULL
    ) STRICT;
    CREATE INDEX event_owner ON event (seq) WHERE hold = 0;
    CREATE TABLE release (
        recall_key TEXT PRIMARY KEY,
        hold INTEGER NOT NULL,
        body BLOB NOT NULL,
        family TEXT NOT NULL,                 -- releases that may stand for one another
        noise TEXT NOT NULL,                  -- JSON: the standard deviation of each part
        base TEXT NOT NULL,                   -- releases of the same rows in other groups
        about TEXT NOT NULL                   -- JSON: which groups
    ) STRICT;
    CREATE INDEX release_family ON release (family);
    CREATE INDEX release_base ON release (base) WHERE base <> '';
"""


def create(path: Path) -> None:
    """Make an empty ledger at ``path``, all of it or nothing, readable by this user only.

    It is made under another name and then linked, so a ledger is never seen half made, a file that
    exists is never overwritten, and an empty file is never taken for a ledger without spending.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            _fill(new)
            with suppress(FileExistsError):  # another process made it first: that one counts
                path.hardlink_to(new)
        finally:
            new.unlink()
        _sync_directory(path.parent)
    except OSError as error:
        raise failures.from_system(path, error) from None
    except sqlite3.Error as error:
        raise failures.from_sqlite(path, error) from None


def connect(path: Path, wait: float) -> sqlite3.Connection:
    """A connection to the ledger at ``path``, checked to be one. Commits wait for the disk."""
    if path.exists() and not os.access(path, os.W_OK, effective_ids=_EFFECTIVE):
        raise failures.read_only(path)  # else SQLite would leave read-only files beside it
    try:
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw",
            uri=True,
            timeout=wait,
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.Error as error:
        raise failures.from_sqlite(path, error) from None
    try:
        _check(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise failures.from_sqlite(path, error) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise failures.not_a_ledger(path)
    version = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    if version != (VERSION,):
        raise failures.newer(path, version[0] if version else "unknown")
    if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        raise failures.no_wal(path)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")


def _fill(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.executescript(f"BEGIN; {_TABLES} COMMIT;")
        connection.execute("INSERT INTO meta VALUES ('version', ?)", (VERSION,))
        connection.execute("PRAGMA journal_mode = WAL")


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
