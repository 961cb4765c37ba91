"""Small databases and policies, asked over the DB-API, for showing that a fault is one.

Epsilon is so large in most of them that noise is less than one half: numbers are then exact, and may be
compared between databases that differ in one person.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb

import dpsql

DATA = (
    "CREATE TABLE people (id BIGINT, age INTEGER, city VARCHAR, pay DOUBLE)",
    "INSERT INTO people SELECT i, 20 + i % 50, 'c' || (i % 3), i % 100 FROM range(1, 1001) t(i)",
    "CREATE TABLE visits (id BIGINT, page VARCHAR, secs INTEGER, day INTEGER)",
    "INSERT INTO visits SELECT 1 + i % 1000, ['a', 'b', 'c'][1 + i % 3], i % 60, i % 40 FROM range(5000) t(i)",
    "CREATE TABLE places (city VARCHAR, country VARCHAR)",
    "INSERT INTO places VALUES ('c0', 'x'), ('c1', 'y'), ('c2', 'z')",
)
POLICY = """
source: {engine: duckdb, path: d.duckdb}
data_version: "1"
units:
  person: {table: people, key: id}
tables:
  people:
    unit: person
    columns:
      id: {type: bigint}
      age: {type: integer, range: [0, 100]}
      city: {type: text}
      pay: {type: double, range: [0, 100]}
  visits:
    unit: person
    foreign_keys: [{columns: [id], references: people}]
    max_rows_per_unit: 10
    columns:
      id: {type: bigint}
      page: {type: text, values: [a, b, c]}
      secs: {type: integer, range: [0, 60]}
      day: {type: integer, range: [0, 39]}
  places: {public: true}
accounts:
  dataset: {epsilon: 1e9, delta: 1e-3}
roles:
  analyst:
    password: "right"
    epsilon: 1e9
    delta: 1e-4
    session: {epsilon: 1e9}
    query: {epsilon: 1e6}
    max_groups_per_unit: 2
"""
Row = tuple[Any, ...]


@dataclass(frozen=True)
class World:
    """Statements that make a database, and a policy for it."""

    data: Sequence[str] = DATA
    policy: str = POLICY
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="planted-")))

    def having(self, *statements: str) -> World:
        """The same in another folder, with statements that are run at the end."""
        return replace(self, data=(*self.data, *statements), folder=World().folder)

    def under(self, *changes: tuple[str, str]) -> World:
        """The same in another folder, with parts of the policy replaced."""
        text = self.policy
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return replace(self, policy=text, folder=World().folder)

    def without(self, person: int) -> World:
        """The same without a person, in all tables."""
        return self.having(
            *(f"DELETE FROM {table} WHERE id = {person}" for table in ("people", "visits"))
        )

    def visited(self, *visits: str) -> World:
        """The same with a person 7777, and its visits: tuples of a query, or VALUES."""
        person = "INSERT INTO people VALUES (7777, 30, 'c0', 5)"
        return self.having(
            person, *(f"INSERT INTO visits SELECT 7777, {visit}" for visit in visits)
        )

    @property
    def path(self) -> Path:
        """The policy's file; the database is made beside it."""
        if not (self.folder / "d.duckdb").exists():
            with duckdb.connect(str(self.folder / "d.duckdb")) as connection:
                for statement in self.data:
                    connection.execute(statement)
        place = self.folder / "p.yaml"
        if not place.exists():
            place.write_text(self.policy)
        return place

    @contextlib.contextmanager
    def opened(self, role: str | None = None, **more: str) -> Iterator[dpsql.Connection]:
        """A connection."""
        with contextlib.closing(dpsql.connect(self.path, role, **more)) as connection:
            yield connection

    def ask(self, *statements: str, role: str | None = None) -> list[Row]:
        """The rows of the last of some statements."""
        rows: list[Row] = []
        with self.opened(role) as connection:
            for statement in statements:
                rows = connection.execute(statement).fetchall()
        return rows


def prepare(world: World) -> None:
    """Make copies of the private tables, as their owner does."""
    command = [sys.executable, "-m", "dpsql", "prepare", "--policy", str(world.path)]
    subprocess.run(command, check=True, capture_output=True)


def refused(world: World, *statements: str) -> bool:
    """Whether opening or asking raises."""
    try:
        world.ask(*statements)
    except dpsql.Error:
        return True
    return False


def explained(connection: dpsql.Connection, statement: str) -> str:
    """EXPLAIN as one text."""
    return "\n".join(row[0] for row in connection.execute(f"EXPLAIN {statement}").fetchall())


def reach(text: str) -> float:
    """How far one unit moves the first statistic of an EXPLAIN, as it says."""
    return reaches(text)[0]


def reaches(text: str) -> list[float]:
    """The same of all statistics."""
    found = re.findall(r"moved by at most ([\d.]+(?:e[+-]\d+)?)", text)
    assert found, text
    return [float(one) for one in found]


def spent(connection: dpsql.Connection) -> float:
    """Epsilon that the data set has spent."""
    return float(connection.execute("SELECT spent_epsilon FROM dpsql.budget").fetchall()[0][0])


def moved(one: World, other: World, *statements: str) -> float:
    """By how much the numbers of two answers differ in all, where the groups are the same."""
    first, second = one.ask(*statements), other.ask(*statements)
    if len(first) != len(second):
        return float("inf")
    return sum(abs(float(a[-1]) - float(b[-1])) for a, b in zip(first, second, strict=True))
