"""Whole numbers beyond 64 bits are missing values to every aggregate, whatever the policy says of missing ones."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql

POLICY = """
source: {engine: duckdb, path: wide.duckdb}
data_version: "1"
units: {person: {key: id}}
tables:
  t:
    unit: person
    max_rows_per_unit: 1
    columns:
      id: {type: bigint}
      a: {type: bigint, range: [0, 100]}
      b: {type: bigint, range: [0, 100]}
accounts: {dataset: {epsilon: 1000000000}}
roles: {analyst: {epsilon: 1000000000, session: {epsilon: 1000000000}, query: {epsilon: 100000000}}}
"""


@pytest.mark.parametrize("column", ["a", "b"])
def test_they_count_as_missing(tmp_path: Path, column: str) -> None:
    with duckdb.connect(str(tmp_path / "wide.duckdb")) as database:
        database.execute("CREATE TABLE t (id BIGINT, a HUGEINT, b UBIGINT)")
        database.execute(
            "INSERT INTO t VALUES (1, 10::HUGEINT ** 21, 18446744073709551615), (2, 10, 10), (3, 300, 300)"
        )
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY, "utf-8")
    connection = dpsql.connect(str(path), role="analyst")
    cursor = connection.cursor()
    cursor.execute(f"SELECT COUNT({column}), SUM({column}), AVG({column}), COUNT(*) FROM t")
    (count, total, mean, rows) = cursor.fetchone()
    assert (count, total, rows) == (2, 110, 3)
    assert mean == pytest.approx(55, abs=1e-3)
    cursor.execute(f"SELECT COUNT(*) FROM t WHERE {column} IS NULL")
    assert cursor.fetchone() == (1,)
    connection.close()
