"""An engine that a client's words can reach has no files, no network, no extensions, and stays so.

Claim: after ``lock`` nothing that the engine is asked reads or writes a file, opens a database, loads
    an extension, or changes a setting. It is tried before anything is asked, and an engine that can
    read is not used.
Assumes: the engine keeps to its settings once the configuration is locked.
Argument: ``lock`` turns off files, network and extensions and then locks the settings; ``prove`` tries to read
    before anything is asked.
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
"""In this order: nothing is changed after the last."""
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
"""Ways to something outside."""
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
"""Ways to leave something outside, or to open what is closed."""


class NotLocked(PolicyError):
    """An engine that can reach what it must not. Nothing is served with it."""


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Close the engine for good, and see that it is closed."""
    (done,) = connection.execute("SELECT current_setting('lock_configuration')").fetchone() or (0,)
    for setting, value in () if done else SETTINGS.items():
        connection.execute(f"SET {setting} = {value}")
    prove(connection)


def prove(connection: duckdb.DuckDBPyConnection) -> None:
    """Try to get out; raise ``NotLocked`` where one way is open."""
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
    """A file with a line that nobody knows, and its folder; where none can be made, this one."""
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
