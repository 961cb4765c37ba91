"""Made-up tables: so many rows to a unit, keys of several sizes, public and not, and a policy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from benchmarks.turns import places
from dpsql.engines.duckdb import copies
from dpsql.policy.load import load
from dpsql.service import Service

WORDS = tuple(f"w{i}" for i in range(20))
POLICY = """
source: {{engine: duckdb, path: {database}}}
data_version: "1"
units: {{person: {{table: {home}, key: id}}}}
tables:
{others}
  classes:
    public: true
    key: word
    columns: {{word: {{type: text}}, class: {{type: text, values: [a, b, c, d]}}}}
  t:
    unit: person
{keys}
    columns:
      {key}: {{type: bigint}}
{public}
{rare}
      word: {{type: text, values: [{words}]}}
      day: {{type: integer, range: [0, 364]}}
      x: {{type: double, range: [0, 500]}}
accounts: {{dataset: {{epsilon: 1000000000, delta: 0.1, composition: basic}}}}
roles:
  wide: {{query: {{epsilon: 1, delta: 1e-9}}, max_groups_per_unit: 20}}
  narrow: {{query: {{epsilon: 1, delta: 1e-9}}, max_groups_per_unit: 5}}
limits: {{max_cells: 10000000, memory: 8GB}}
"""
PEOPLE = """
  people:
    unit: person
    columns: {id: {type: bigint}, region: {type: integer, range: [0, 9]}}
"""
ACCOUNTS = """
  accounts:
    unit: person
    key: account
    foreign_keys: [{columns: [id], references: people}]
    max_rows_per_unit: 10
    columns: {account: {type: bigint}, id: {type: bigint}}
"""


@dataclass(frozen=True)
class Data:
    """A table ``t`` with ``per_unit`` rows to a unit; ``far`` puts another key between the two.

    ``g<n>`` is a public key of n groups, ``r<n>`` one whose values are not public.
    """

    per_unit: int
    far: bool = False
    groups: tuple[int, ...] = (20, 1_000, 100_000)

    @property
    def name(self) -> str:
        """The file's, but for the number of rows."""
        shape = "_".join(str(g) for g in self.groups)
        return f"t_{self.per_unit}{'_far' if self.far else ''}_{shape}"

    @property
    def alone(self) -> bool:
        """Whether each row is a unit."""
        return self.per_unit == 1

    def write(self, path: Path, rows: int) -> None:
        """The database."""
        units = max(1, rows // self.per_unit)
        one = "range" if self.alone else f"(hash(range) % {units})"
        public = "".join(
            f", (hash(range, {10 + i}) % {g})::INTEGER AS g{g}" for i, g in enumerate(self.groups)
        )
        rare = "".join(
            f", (hash(range, {20 + i}) % {g})::INTEGER AS r{g}" for i, g in enumerate(self.groups)
        )
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                f"CREATE TABLE t AS SELECT {one}::BIGINT AS {self._key}{public}{rare},"
                " 'w' || (hash(range, 3) % 20) AS word, (hash(range, 4) % 365)::INTEGER AS day,"
                f" (hash(range, 2) % 50001) / 100.0::DOUBLE AS x FROM range({rows})"
            )
            connection.execute(
                "CREATE TABLE classes AS SELECT 'w' || range AS word,"
                " substr('abcd', 1 + range::INTEGER % 4, 1) AS class FROM range(20)"
            )
            if not self.alone:
                connection.execute(
                    "CREATE TABLE people AS SELECT range AS id,"
                    f" (hash(range, 5) % 10)::INTEGER AS region FROM range({units})"
                )
            if self.far:
                connection.execute(
                    "CREATE TABLE accounts AS SELECT range AS account, range // 2 AS id"
                    f" FROM range({units})"
                )

    def policy(self, database: Path) -> str:
        """The policy's text."""
        others = "" if self.alone else PEOPLE + (ACCOUNTS if self.far else "")
        public = [f"      g{g}: {{type: integer, range: [0, {g - 1}]}}" for g in self.groups]
        return POLICY.format(
            database=database, home="t" if self.alone else "people", others=others,
            keys=self._keys(), key=self._key, words=", ".join(WORDS), public="\n".join(public),
            rare="\n".join(f"      r{g}: {{type: integer}}" for g in self.groups),
        )  # fmt: skip

    @property
    def _key(self) -> str:
        return "account" if self.far else "id"

    def _keys(self) -> str:
        if self.alone:
            return ""
        step = "account], references: accounts" if self.far else "id], references: people"
        most = 2 * self.per_unit * (2 if self.far else 1)
        return f"    foreign_keys: [{{columns: [{step}}}]\n    max_rows_per_unit: {most}"


@contextmanager
def served(policy: Path, *, prepared: bool) -> Iterator[Service]:
    """A policy at work, with copies of all private tables or without any."""
    found = load(policy)
    copies.remove(found)
    if prepared:
        copies.prepare(found, [t.name for t in found.tables.values() if not t.public])
    with Service.open(policy) as service:
        yield service


@contextmanager
def opened(
    data: Data, rows: int, kept: Path | None, *, prepared: bool = False
) -> Iterator[Service]:
    """The table at a size, with a ledger of its own; ``kept`` may have it from an earlier run."""
    with places(kept) as (folder, place):
        database = folder / f"{data.name}_{rows}.duckdb"
        if not database.exists():
            made = database.with_suffix(".part")
            made.unlink(missing_ok=True)
            data.write(made, rows)
            made.rename(database)
        policy = place / "policy.yaml"
        policy.write_text(data.policy(database))
        with served(policy, prepared=prepared) as service:
            yield service


def plain(service: Service) -> duckdb.DuckDBPyConnection:
    """The same database under the same settings, without dpsql."""
    cursor: duckdb.DuckDBPyConnection = service._engine._root.cursor()
    return cursor
