"""Worlds on the disk: a folder with ``policy.yaml`` and ``data.duckdb``."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import duckdb

from tests.adversary.model import World

POLICY, DATA = "policy.yaml", "data.duckdb"
COPIES = f"{DATA}.prepared"
"""What ``dpsql prepare`` writes beside the database."""


def write(world: World, folder: Path) -> Path:
    """Make the database and the policy of a world in an empty folder; the policy's path."""
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(folder / DATA)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_progress_bar = false")
        for statement in world.ddl:
            connection.execute(statement)
        for table, rows in groupby(world.rows, key=lambda row: row.table):
            values = ", ".join(f"({', '.join(row.cells)})" for row in rows)
            connection.execute(f"INSERT INTO {table} VALUES {values}")
        for statement in world.views:
            connection.execute(statement)
    policy = folder / POLICY
    policy.write_text(world.policy, encoding="utf-8")
    return policy
