"""Temporary databases for tests, made by generated statements."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb


def made(path: Path, statements: Iterable[str]) -> Path:
    """Make a database file by these statements. Returns its path."""
    with duckdb.connect(str(path), config={"enable_external_access": "false"}) as connection:
        for statement in statements:
            connection.execute(statement)
    return path
