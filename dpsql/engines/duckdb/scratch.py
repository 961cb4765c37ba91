"""Throw-away databases: made by generated statements, read by whoever tests with them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb


def made(path: Path, statements: Iterable[str]) -> Path:
    """A new database file."""
    with duckdb.connect(str(path), config={"enable_external_access": "false"}) as connection:
        for statement in statements:
            connection.execute(statement)
    return path
