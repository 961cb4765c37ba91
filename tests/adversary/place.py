"""Worlds on the disk: a folder with ``policy.yaml`` and ``data.duckdb``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import duckdb

from tests.adversary.model import Row, World

POLICY, DATA, LATER = "policy.yaml", "data.duckdb", "later.duckdb"
COPIES = f"{DATA}.prepared"
"""What ``dpsql prepare`` writes beside the database."""


def write(world: World, folder: Path) -> Path:
    """Make the database and the policy of a world in an empty folder; the policy's path."""
    folder.mkdir(parents=True, exist_ok=True)
    _make(world, world.rows, folder / DATA)
    policy = folder / POLICY
    policy.write_text(world.policy, encoding="utf-8")
    return policy


def write_earlier(world: World, folder: Path) -> Path:
    """The same with the rows of the earlier database; that of the world lies beside it for later."""
    policy = write(replace(world, rows=world.earlier), folder)
    _make(world, world.rows, folder / LATER)
    both = (folder / DATA, folder / LATER)
    size = max(path.stat().st_size for path in both)
    for path in both:
        os.truncate(path, size)
    return policy


def put_in_place(folder: Path) -> None:
    """Put the later database in the place of the earlier one, whose size it has, with its times."""
    old = (folder / DATA).stat()
    (folder / LATER).replace(folder / DATA)
    os.utime(folder / DATA, ns=(old.st_atime_ns, old.st_mtime_ns))


def _make(world: World, rows: Sequence[Row], database: Path) -> None:
    with duckdb.connect(str(database)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_progress_bar = false")
        for statement in world.ddl:
            connection.execute(statement)
        for table, some in groupby(rows, key=lambda row: row.table):
            values = ", ".join(f"({', '.join(row.cells)})" for row in some)
            connection.execute(f"INSERT INTO {table} VALUES {values}")
        for statement in world.views:
            connection.execute(statement)
