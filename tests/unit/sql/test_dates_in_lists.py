"""IN over a query whose result is a list: dates beside timestamps are times of midnight."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import dpsql

_POLICY = """\
source: {engine: duckdb, path: data.duckdb}
data_version: "1"
units: {visit: {table: visits, key: row}}
tables:
  visits: {unit: visit, columns: {day: {type: date}, moment: {type: timestamp}}}
  days: {public: true}
accounts: {dataset: {epsilon: 1e9, delta: 1e-2}}
roles: {analyst: {session: {epsilon: 1e9}, query: {epsilon: 1e6, delta: 1e-6}}}
"""
_MADE = (
    (
        "CREATE TABLE visits AS SELECT DATE '2024-01-01' + i::INTEGER % 2 AS day,"
        " TIMESTAMP '2024-01-01' + INTERVAL 12 HOUR * (i % 4) AS moment FROM range(80) AS r(i)"
    ),
    "CREATE TABLE days AS SELECT DATE '2024-01-02' AS day, TIMESTAMP '2024-01-02' AS moment",
)
_ONCE = "SELECT day FROM visits GROUP BY 1 HAVING COUNT(*) > 9"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dates")
    with duckdb.connect(str(made / "data.duckdb")) as engine:
        for statement in _MADE:
            engine.execute(statement)
    (made / "policy.yaml").write_text(_POLICY)
    return made


@pytest.mark.parametrize(
    "condition",
    [
        "moment IN (SELECT day FROM days)", "moment NOT IN (SELECT day FROM days)",
        "moment IN (SELECT day FROM days ORDER BY 1 LIMIT 1)", "day IN (SELECT moment FROM days)",
        f"moment IN ({_ONCE})", f"moment NOT IN ({_ONCE})", "moment IN (SELECT moment FROM days)",
    ],
)  # fmt: skip
def test_a_day_in_a_list_is_compared_with_a_time(folder: Path, condition: str) -> None:
    """The second check stopped these: the list was of dates, beside a time."""
    sql = f"SELECT COUNT(*) AS n FROM visits WHERE {condition}"
    with duckdb.connect(str(folder / "data.duckdb"), read_only=True) as engine:
        wanted = engine.execute(sql).fetchall()
    with closing(dpsql.connect(folder / "policy.yaml")) as connection:
        assert connection.execute(sql).fetchall() == wanted
