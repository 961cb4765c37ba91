"""The lock of an engine that a client's text can reach: no files, no network, no extensions.

Claim: after ``lock`` no statement reads or writes a file, opens a database, loads an extension, or
    changes a setting. This is tried before any statement runs, and an engine that fails is not
    used.
Assumes: the engine obeys its settings once the configuration is locked.
Argument: ``lock`` disables files, network and extensions and then locks the settings. ``prove``
    tries to break out before any statement runs.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from dpsql.diagnostics.refusal import PolicyError

SETTINGS = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}
"""The settings, in this order: after the last none can be changed."""
READS = (
    "SELECT * FROM '{file}'",
    "TABLE '{file}'",
    "SELECT * FROM read_csv('{file}')",
    "SELECT content FROM main.read_text('{file}')",
    "SELECT content FROM system.main.read_blob('{file}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM query('FROM ''{file}''')",
    "SELECT * FROM query_table('{file}')",
)
"""Statements that read something outside of the engine."""
WRITES = (
    "COPY (SELECT 1) TO '{folder}/copied.csv'",
    "ATTACH '{folder}/other.duckdb' AS other",
    "EXPORT DATABASE '{folder}/exported'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET enable_external_access",
    "INSTALL httpfs",
    "LOAD '{folder}/extension'",
)
"""Statements that write something outside of the engine, or undo its settings."""


class NotLocked(PolicyError):
    """Raised for an engine that can reach files or settings. Nothing is served with it."""


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Lock the engine for good, and check that it is locked."""
    (done,) = connection.execute("SELECT current_setting('lock_configuration')").fetchone() or (0,)
    for setting, value in () if done else SETTINGS.items():
        connection.execute(f"SET {setting} = {value}")
    prove(connection)


def prove(connection: duckdb.DuckDBPyConnection) -> None:
    """Try all statements of ``READS`` and ``WRITES``; raise ``NotLocked`` if one works."""
    with _outside() as (file, folder):
        for way in (*READS, *WRITES):
            statement = way.format(file=file, folder=folder)
            if _works(connection, statement):
                words = way.format(file="FILE", folder="FOLDER")
                raise NotLocked(
                    f"an engine must not reach files or settings, and answers `{words}`; nothing is"
                    " served. This is a defect of dpsql or of the installed duckdb: report it"
                )


@contextmanager
def _outside() -> Iterator[tuple[str, str]]:
    """A file with a random line, and its folder; this module's if no file can be made."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="dpsql-")
    except OSError:
        own = Path(__file__)
        yield str(own), str(own.parent)
        return
    with folder as name:
        file = Path(name) / "canary.csv"
        file.write_text(f"canary\n{secrets.token_hex(8)}\n")
        yield str(file), name


def _works(connection: duckdb.DuckDBPyConnection, statement: str) -> bool:
    try:
        connection.execute(statement).fetchall()
    except duckdb.Error:
        return False
    return True
