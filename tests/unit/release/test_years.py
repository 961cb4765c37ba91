"""Dates that programs cannot hold are NULL, in every answer: none is paid for and then fails."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.diagnostics.refusal import SourceMismatch
from dpsql.release import postprocess

POLICY = """
source: {engine: duckdb, path: data.duckdb}
data_version: "1"
units: {person: {table: people, key: id}}
tables:
  people:
    unit: person
    columns: {id: {type: bigint}, day: {type: date}, at_time: {type: timestamp}, side: {type: text, values: [A, B]}}
accounts: {dataset: {epsilon: 1e9, delta: 1e-5, composition: basic}}
roles: {analyst: {epsilon: 1e9, query: {epsilon: 1e5}}}
"""
LATE = "DATE '2020-01-01' + CAST(COUNT(*) AS INTEGER) * 100000"
BEYOND = {
    f"SELECT {LATE} FROM people": [(None,)],
    "SELECT DATE '2020-01-01' - CAST(COUNT(*) AS INTEGER) * 1000 FROM people": [(None,)],
    f"SELECT side, {LATE} FROM people GROUP BY ROLLUP(side) ORDER BY side": [
        ("A", None),
        ("B", None),
        (None, None),
    ],
    f"SELECT a.side, (SELECT {LATE} FROM people) FROM people AS a GROUP BY 1 ORDER BY 1": [
        ("A", None),
        ("B", None),
    ],
    f"SELECT COUNT(*) FROM people WHERE day > (SELECT {LATE} FROM people)": [(0,)],
    "SELECT day, COUNT(*) FROM people GROUP BY day ORDER BY 2": [(None, 1000), (None, 2000)],
    "SELECT at_time, COUNT(*) FROM people GROUP BY 1 ORDER BY 2": [(None, 1000), (None, 2000)],
}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("years")
    with duckdb.connect(str(place / "data.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS id,"
            " CASE WHEN i < 1000 THEN DATE 'infinity' ELSE DATE '290000-01-01' END AS day,"
            " CASE WHEN i < 1000 THEN TIMESTAMP '-infinity' ELSE TIMESTAMP '290000-01-01' END AS at_time,"
            " CASE WHEN i % 2 = 0 THEN 'A' ELSE 'B' END AS side FROM range(3000) r(i)"
        )
    (place / "policy.yaml").write_text(POLICY)
    return place / "policy.yaml"


@pytest.mark.parametrize("sql", BEYOND)
def test_a_date_beyond_what_programs_hold_is_null(sql: str, policy: Path) -> None:
    with dpsql.connect(policy) as connection:
        cursor = connection.cursor()
        for _ in range(2):  # measured, and recalled
            cursor.execute(sql)
            assert [
                tuple(round(v) if isinstance(v, float) else v for v in row) for row in cursor
            ] == BEYOND[sql]


def test_without_it_what_was_paid_for_is_not_answered(
    policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault."""
    monkeypatch.setattr(postprocess, "in_years", lambda table: table)
    with dpsql.connect(policy) as connection, pytest.raises(OverflowError):
        connection.execute(f"SELECT {LATE} FROM people WHERE id < 2000").fetchall()


def test_the_first_and_the_last_day_are_themselves(policy: Path) -> None:
    found = postprocess.PostProcessor().run(
        "SELECT CAST('0001-01-01' AS DATE) AS a, CAST('9999-12-31' AS DATE) AS b,"
        " CAST('0001-01-01' AS TIMESTAMP) AS c, CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP) AS d",
        {},
    )
    assert [str(v) for v in found.to_pylist()[0].values()] == [
        "0001-01-01", "9999-12-31", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value"), [("date", "DATE '290000-01-01'"), ("double", "'NaN'::DOUBLE")]
)
def test_values_that_no_policy_can_list_open_nothing(kind: str, value: str, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "data.duckdb")) as connection:
        connection.execute(f"CREATE TABLE listed AS SELECT {value} AS v")
        connection.execute(f"CREATE TABLE people AS SELECT 1 AS id, {value} AS v")
    path = tmp_path / "policy.yaml"
    head, accounts = POLICY.split("  people:")[0], POLICY[POLICY.index("accounts:") :]
    columns = f"{{id: {{type: integer}}, v: {{type: {kind}, values_from: listed.v}}}}"
    tables = f"  people: {{unit: person, columns: {columns}}}\n  listed: {{public: true}}\n"
    path.write_text(head + tables + accounts)
    with pytest.raises(SourceMismatch, match="are no values of a policy"):
        dpsql.connect(path)
