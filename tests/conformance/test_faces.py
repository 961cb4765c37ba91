"""One session script, every face: the same answers, refusals and costs by whichever way it is asked.

The service asks first; the other faces then get the stored answers, so numbers must be equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.cli import main
from dpsql.cli.demo import EXAMPLES, POLICY
from dpsql.engines.duckdb.demo_data import write_demo_data
from dpsql.service import Service, plain

SCRIPT = (
    *EXAMPLES,
    "SELECT COUNT(*) AS n, COUNT(*) AS n, AVG(age) AS age FROM customers WHERE country = 'Italy'",
    "SELECT region, COUNT(*) AS n FROM countries GROUP BY region ORDER BY region",
    "SELECT channel, SUM(amount) / COUNT(*) AS mean FROM orders GROUP BY channel HAVING COUNT(*) > 0",
    "SELECT email FROM customers",
    "SHOW TABLES",
    "DESCRIBE orders",
    "SHOW COLUMNS FROM Orders",
    r"\d countries",
    "DESCRIBE nothing",
    "SELECT COUNT(*) FROM nothing",
    "SELECT COUNT(*) FROM",
)


@dataclass
class Answer:
    """What a face says, in the form of its JSON."""

    rows: list[Any] = field(default_factory=list)
    columns: list[Any] = field(default_factory=list)
    intervals: list[str] = field(default_factory=list)
    left: float = 0.0
    refused: str = ""


Face = Callable[[Path, str], Answer]


def by_service(policy: Path, sql: str) -> Answer:
    with Service.open(policy) as service:
        try:
            reply = service.session("analyst").execute(sql, intervals=True)
        except dpsql.Refused as refused:
            return Answer(refused=str(refused))
        return _answer(json.loads(plain.to_json(reply)))


def by_dbapi(policy: Path, sql: str) -> Answer:
    with dpsql.connect(policy, role="analyst") as connection:
        cursor = connection.cursor()
        try:
            cursor.execute(sql)
        except dpsql.Refused as refused:
            return Answer(refused=str(refused))
        rows = [[v.isoformat() if hasattr(v, "isoformat") else v for v in row] for row in cursor]
        assert cursor.description is not None
        columns = [{"name": c[0], "type": c[1]} for c in cursor.description]
        left = cursor.remaining["session"]["rho"]
        return Answer(rows, columns, [*cursor.intervals], left)


def by_command(policy: Path, sql: str, capsys: pytest.CaptureFixture[str]) -> Answer:
    arguments = ["query", "--policy", str(policy), "--role", "analyst", "--format", "json", sql]
    code = main(arguments)
    said = capsys.readouterr()
    if code == 3:
        return Answer(refused=said.err.rstrip("\n"))
    assert code == 0
    return _answer(json.loads(said.out))


def _answer(document: dict[str, Any]) -> Answer:
    left = document["remaining"]["session"]["rho"]
    return Answer(document["rows"], document["columns"], [*document["intervals"]], left)


def test_every_face_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_demo_data(tmp_path / "shop.duckdb")
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    answers = [by_service(policy, sql) for sql in SCRIPT]
    assert sum(bool(a.refused) for a in answers) == 4
    spent = answers[7].left
    # Italy's are among the countries' but for its searches, and a limit on rows of channels was found.
    with dpsql.connect(policy, role="analyst") as connection:
        total = connection.budget()["session"]["total"]["rho"]
    assert spent / total == pytest.approx(1 - 0.05 * 6 - 0.0325, abs=1e-7)
    for sql, first in zip(SCRIPT, answers, strict=True):
        first.left = 0 if first.refused else spent
        assert by_dbapi(policy, sql) == first
        assert by_command(policy, sql, capsys) == first
