"""Rows of one unit from several tables, whose keys are read in more than one way."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from dpsql.service import Service

POLICY = """
source: {engine: duckdb, path: x.duckdb}
data_version: "1"
units: {person: {table: people, key: id}}
tables:
  people: {unit: person, columns: {id: {type: bigint}, c: {type: integer, range: [0, 2]}}}
  accounts:
    unit: person
    key: account
    foreign_keys: [{columns: [id], references: people}]
    max_rows_per_unit: 2
    columns: {account: {type: bigint}, id: {type: bigint}}
  events:
    unit: person
    foreign_keys: [{columns: [account], references: accounts}]
    max_rows_per_unit: 20
    columns: {account: {type: bigint}, g: {type: integer, range: [0, 2]}}
accounts: {dataset: {epsilon: 1e9, delta: 0.1, composition: basic}}
roles: {oracle: {query: {epsilon: 1e8}, max_groups_per_unit: 3}}
"""
SIDES = ("SELECT c AS g FROM people", "SELECT g FROM events")
FAR = "10000000000000000000::HUGEINT"


def service(folder: Path, first: str) -> Service:
    """Three people, of whom one has far more events than declared."""
    with duckdb.connect(str(folder / "x.duckdb")) as connection:
        connection.execute(
            f"CREATE TABLE people AS SELECT {first} + range AS id, 0 AS c FROM range(3)"
        )
        connection.execute(
            f"CREATE TABLE accounts AS SELECT range AS account, {first} + range AS id FROM range(3)"
        )
        connection.execute(
            "CREATE TABLE events AS SELECT 0::BIGINT AS account, 1 AS g FROM range(5000)"
            " UNION ALL SELECT 1, 2 FROM range(10)"
        )
    (folder / "p.yaml").write_text(POLICY)
    return Service.open(folder / "p.yaml")


@pytest.mark.parametrize("sides", [SIDES, SIDES[::-1]])
@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("1", [(0, 3), (1, 21), (2, 10)]),
        (FAR, [(0, 0), (1, 0), (2, 0)]),  # keys that are no bigint are nobody's
    ],
)
def test_a_key_is_read_alike_on_all_sides(
    tmp_path: Path, sides: tuple[str, str], first: str, expected: list[tuple[int, int]]
) -> None:
    sql = f"SELECT g, COUNT(*) FROM ({' UNION ALL '.join(sides)}) AS u GROUP BY g ORDER BY g"
    with service(tmp_path, first) as here:
        found = here.session().execute(sql).table
        rows = [tuple(row.values()) for row in found.to_pylist()]
    assert [row[0] for row in rows] == [0, 1, 2]
    assert dict(rows) == pytest.approx(dict(expected), abs=1)
