"""Answers of every kind in every form: dpsql's own tables, no rows, no intervals, lists and times."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from callers import Caller, caller
from support.daily import NIGHTLY
from support.services import policy_file

from dpsql.cli import main
from dpsql.dbapi import Connection
from dpsql.serve.http.openapi import ARROW
from dpsql.service import Service, Session

FORMATS = ("table", "csv", "json", "parquet")
QUESTIONS = {
    "private": "SELECT channel, COUNT(*) AS n, AVG(amount) AS mean FROM orders GROUP BY channel",
    "budget": "SELECT * FROM dpsql.budget",
    "ledger": "SELECT * FROM dpsql.ledger",
    "remaining": "SELECT * FROM dpsql.remaining",
    "policy": "SELECT * FROM dpsql.policy",
    "own, no rows": "SELECT * FROM dpsql.ledger WHERE hold < 0",
    "own, one number": "SELECT COUNT(*), MAX(left_epsilon) FROM dpsql.budget WHERE account = 'none'",
    "public": "SELECT * FROM countries",
    "public, no rows": "SELECT * FROM countries WHERE country = 'nowhere'",
    "private, no rows": "SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel HAVING 1 = 0",
    "private, no interval": "SELECT COUNT(*) > 10 AS big, 'x' AS t FROM orders",
    "lists": "SELECT PERCENTILE_CONT(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY age) AS q FROM customers",
    "times": "SELECT DATE '2025-01-31' AS d, TIMESTAMP '2025-01-31 10:00:00' AS t, TRUE AS b",
    "numbers": "SELECT 1.5 AS x, NULL AS nothing, CAST(NULL AS DOUBLE) AS missing, 1e300 * 10 AS big",
    "names": "SELECT 1 AS n, 2 AS n",
    "SHOW": "SHOW dpsql.budget",
    "SET": "SET dpsql.epsilon = 0.1",
    "EXPLAIN": "EXPLAIN SELECT COUNT(*) FROM orders",
}
_STATEMENTS = ("SHOW", "SET", "EXPLAIN")


@pytest.fixture(scope="module")
def path() -> Path:
    made = policy_file(
        "shop", "shop", lambda text: text.replace("session: {epsilon: 1}", "session: {epsilon: 4}")
    )
    with Service.open(made) as asked:  # so that the ledger has an entry, whichever test comes first
        asked.session("analyst").execute("SELECT COUNT(*) FROM orders")
    return made


@pytest.fixture(scope="module")
def service(path: Path) -> Iterator[Service]:
    with Service.open(path) as found:
        yield found


@pytest.fixture(scope="module")
def robot(service: Service) -> Caller:
    return caller(service, "analyst")


PAIRS = [
    (name, form)
    for i, name in enumerate(QUESTIONS)
    for j, form in enumerate(FORMATS)
    if NIGHTLY or (i + j) % 2
]
"""By day each question is answered in two formats, and each format with every other question."""


@pytest.mark.parametrize(("name", "form"), PAIRS)
def test_the_command_answers_in_every_format(
    path: Path, name: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = tmp_path / "answer"
    arguments = ["query", "--policy", str(path), "--role", "analyst", "--format", form]
    code = main([*arguments, "--intervals", "--output", str(told), QUESTIONS[name]])
    said = capsys.readouterr().err
    assert code == 0, said
    assert "DP903" not in said
    if name not in _STATEMENTS:
        assert "left in" in said, "the line under an answer says what is left"
    if not told.exists():
        assert name == "SET", "there is nothing to write"
        return
    body = told.read_bytes()
    match form:
        case "json":
            document = json.loads(body)
            assert {"dataset", "tables", "role", "session"} == set(document["remaining"])
            assert all(len(row) == len(document["columns"]) for row in document["rows"])
        case "csv":
            rows = pa.csv.read_csv(io.BytesIO(body)).num_rows if body.strip() else 0
            assert (rows == 0) is (name.endswith("no rows") or name == "SET")
        case "parquet":
            assert pa.parquet.read_table(io.BytesIO(body)).num_columns > 0 or name == "SET"
        case _:
            assert body.decode().strip() or name == "SET"


@pytest.mark.parametrize("name", QUESTIONS)
def test_python_and_http_answer_too(service: Service, robot: Caller, name: str) -> None:
    session = service.session("analyst")
    cursor = Connection(service, session).cursor().execute(QUESTIONS[name])
    rows = cursor.fetchall()
    assert set(cursor.remaining) == {"dataset", "tables", "role", "session"}
    assert cursor.arrow().num_rows == len(rows)
    asked = {"sql": QUESTIONS[name]}
    said = robot.post("/v1/query", json=asked)
    assert said.status_code == 200, said.text
    assert len(said.json()["rows"]) == len(rows)
    stream = robot.post("/v1/query", json=asked, headers={"Accept": ARROW})
    assert pa.ipc.open_stream(stream.content).read_all().num_rows == len(rows)


def test_an_answer_that_tells_of_no_account_is_noticed(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Session, "execute", Session._reply)
    assert main(["query", "--policy", str(path), "--role", "analyst", QUESTIONS["policy"]]) == 1
    assert "DP903" in capsys.readouterr().err
