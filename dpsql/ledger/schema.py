"""The SQLite file of a ledger: creating it, opening it, and recognizing it among other files."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from dpsql.ledger import failures, rows
from dpsql.ledger.migrate import VERSION, is_old, migrate

APPLICATION = 0x6470_736C  # "dpsl", in the file's header
LOGS = ("-wal", "-shm")
"""The files that SQLite keeps beside an open file: the write-ahead log, and its index."""
INTERRUPTED = "a-restore-was-interrupted:"
"""The prefix of the target of the dangling link that ``replace`` puts in the ledger's place."""
_EFFECTIVE = os.access in os.supports_effective_ids

_TABLES = """
    CREATE TABLE meta (
        key TEXT PRIMARY KEY,                 -- version, dataset, seal, secret, and marks as in rows.py
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
"""
_RELEASE = (
    """CREATE TABLE release (
        recall_key TEXT PRIMARY KEY,
        hold INTEGER NOT NULL,
        body BLOB NOT NULL,
        family TEXT NOT NULL,                 -- releases that may stand for one another
        noise TEXT NOT NULL,                  -- JSON: the standard deviation of each part
        base TEXT NOT NULL,                   -- releases of the same rows in other groups
        about TEXT NOT NULL                   -- JSON: which groups
    ) STRICT""",
    "CREATE INDEX release_family ON release (family)",
    "CREATE INDEX release_base ON release (base) WHERE base <> ''",
)


Fill = Callable[[sqlite3.Connection], None]


def create(path: Path, fill: Fill | None = None) -> bool:
    """Create a ledger at ``path``, all of it or nothing, readable by this user only.

    It is created under another name and then linked. So an incomplete ledger is never seen, an
    existing file is never overwritten, and an empty file is never taken for a ledger without
    spending. ``fill`` writes into the empty ledger first. Returns False if another process created
    the file meanwhile.
    """
    try:
        with _new_file(path, fill) as new:
            try:
                path.hardlink_to(new)
            except FileExistsError:  # the other process's ledger is the one
                return False
        sync(path.parent)
        return True
    except OSError as error:
        raise failures.from_system(path, error) from None
    except sqlite3.Error as error:
        raise failures.from_sqlite(path, error) from None


@contextmanager
def _new_file(path: Path, fill: Fill | None) -> Iterator[Path]:
    """A new ledger under another name beside ``path``; it is removed at the end if still there."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        with closing(sqlite3.connect(new, isolation_level=None)) as connection:
            _fill(connection, fill)
        yield new
    finally:
        new.unlink(missing_ok=True)


def replace(path: Path, fill: Fill) -> Path:
    """Replace a damaged ledger by a new one; returns the path under which the damaged one is kept.

    In between, the path is a dangling link, and opening it reports an interrupted restore. So the
    path never leads to an older state, and the log of the damaged file is never taken for a log of
    the new file.
    """
    try:
        with _new_file(path, fill) as new:
            kept = kept_by_interrupted(path) or _keep(path)
            marker = path.with_name(f".{path.name}.{secrets.token_hex(8)}.marker")
            marker.symlink_to(INTERRUPTED + kept.name)
            marker.replace(path)
            sync(path.parent)
            for name in LOGS:
                path.with_name(path.name + name).unlink(missing_ok=True)
            sync(path.parent)
            new.replace(path)
            sync(path.parent)
    except OSError as error:
        raise failures.from_system(path, error) from None
    except sqlite3.Error as error:
        raise failures.from_sqlite(path, error) from None
    return kept


def _keep(path: Path) -> Path:
    """Keep a file and its logs under another name; returns that name."""
    kept = path.with_name(f"{path.name}.damaged-{secrets.token_hex(4)}")
    for name in ("", *LOGS):
        with suppress(FileNotFoundError):
            kept.with_name(kept.name + name).hardlink_to(path.with_name(path.name + name))
    sync(path.parent)
    return kept


def kept_by_interrupted(path: Path) -> Path | None:
    """The damaged file that ``replace`` kept, if it was killed and left its marker; else None.

    It opens no file: see ``open_file.py``.
    """
    if not path.is_symlink():
        return None
    prefix, marked, name = str(path.readlink()).partition(INTERRUPTED)
    return path.with_name(name) if marked and not prefix else None


def connect_file(path: Path, wait: float) -> sqlite3.Connection:
    """A connection to the ledger at ``path``, which is checked. Commits wait for the disk."""
    if path.exists() and not os.access(path, os.W_OK, effective_ids=_EFFECTIVE):
        raise failures.read_only(path)  # SQLite would leave read-only files beside it
    if kept_by_interrupted(path) is not None:
        raise failures.restore_interrupted(path)
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
        check(connection, path)
        _write_ahead(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Check that the file is a ledger; one of an earlier version is migrated."""
    try:
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise failures.not_a_ledger(path)
        if not is_old(path, rows.meta(connection).get("version")):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            migrate(connection, path, _RELEASE)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.rollback()
    except sqlite3.Error as error:
        raise failures.from_sqlite(path, error) from None
    except (TypeError, ValueError):
        raise failures.damaged_ledger(path) from None


def _write_ahead(connection: sqlite3.Connection, path: Path) -> None:
    """Turn the write-ahead log on: readers do not wait for the writer.

    ``SqliteWriter`` decides when the log is copied into the file.
    """
    try:
        if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise failures.no_wal(path)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA journal_size_limit = 0")
    except sqlite3.Error as error:
        raise failures.from_sqlite(path, error) from None


def _fill(connection: sqlite3.Connection, fill: Fill | None) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(f"BEGIN; {_TABLES}")
    for statement in _RELEASE:
        connection.execute(statement)
    rows.put_meta(connection, "version", VERSION)
    rows.put_meta(connection, "seal", rows.seal(connection))
    if fill is not None:
        fill(connection)
    connection.execute("COMMIT")


def sync(directory: Path) -> None:
    """Make names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
