"""Commands about budgets: reports, audits in three formats, edits of a policy, price lists."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.services import policy_file

from dpsql.cli import main
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.policy.load import load
from dpsql.service import Service

COUNT = "SELECT COUNT(*) FROM orders"
Output = pytest.CaptureFixture[str]


@pytest.fixture
def policy() -> Path:
    return policy_file("shop", "shop")


def run(command: str, policy: Path, *more: str) -> int:
    return main([command, "--policy", str(policy), *more])


def ask(policy: Path, *statements: str) -> None:
    with Service.open(policy) as service:
        for sql in statements:
            service.session("analyst").execute(sql)


def test_the_budget_is_a_bar_and_a_promise(policy: Path, capsys: Output) -> None:
    ask(policy, COUNT, COUNT + " WHERE amount > 1")
    assert run("budget", policy, "--role", "analyst") == 0
    lines = capsys.readouterr().out.splitlines()
    session = next(line for line in lines if line.startswith('session "default"'))
    assert "████████████████────" in session
    assert "0.8" in session
    at = next(i for i, line in enumerate(lines) if "What the spending so far promises" in line)
    promised = [" ".join(line.split()) for line in lines[at:]]
    assert "the dataset one unit 0.2 0" in promised
    assert "2 units together 0.4 0" in promised
    assert "5 units together 1 0" in promised


def test_a_promise_that_is_none_says_so(capsys: Output) -> None:
    def dear(text: str) -> str:
        return text.replace("query: {epsilon: 0.1}", "query: {epsilon: 5, delta: 1e-7}").replace(
            "session: {epsilon: 1}", "session: {epsilon: 5}"
        )

    policy = policy_file("shop", "shop", dear)
    ask(policy, "SELECT city, COUNT(*) FROM customers GROUP BY city")
    assert run("budget", policy, "--role", "analyst") == 0
    assert "5 units together   nothing" in capsys.readouterr().out


def test_the_same_queries_by_each_composition(policy: Path, capsys: Output) -> None:
    ask(policy, *(f"{COUNT} WHERE amount > {i}" for i in range(3)))
    assert run("budget", policy, "--compare") == 0
    out = capsys.readouterr().out
    lines = [
        " ".join(line.split()) for line in out.partition("added up in other ways")[2].splitlines()
    ]
    assert any(line.startswith("the dataset 3 basic 0.3") for line in lines)
    assert any(line.startswith("advanced 0.3") for line in lines)
    assert any(line.startswith("zcdp 0.") for line in lines)
    assert any('role "pure"' in line for line in lines)


def test_the_audit_for_programs(policy: Path, tmp_path: Path, capsys: Output) -> None:
    ask(
        policy,
        COUNT,
        'SELECT COUNT(*) /*=HYPERLINK("http://example.org")*/ FROM visits',
    )
    ask(policy, " " + COUNT)
    assert run("audit", policy, "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sound"]
    assert found["problems"] == []
    assert [r["record"] for r in found["records"]] == [1, 2, 3, 4, 5]
    assert found["records"][1]["statement"] == COUNT
    assert found["records"][-1]["hash"] == found["head"]
    place = tmp_path / "audit.csv"
    assert run("audit", policy, "--format", "csv", "-o", str(place)) == 0
    assert "sound: 6 records" in capsys.readouterr().err
    rows = list(csv.DictReader(io.StringIO(place.read_text())))
    assert [row["event"] for row in rows] == [
        "first policy", "started", "committed", "started", "committed", "exported",
    ]  # fmt: skip
    assert rows[1]["epsilon"] == "0.1"
    assert rows[1]["role"] == "analyst"
    assert rows[1]["accounts"].startswith("policy/dataset ")
    assert rows[2]["rho"] == ""
    text = tmp_path / "audit.txt"
    assert run("audit", policy, "-o", str(text)) == 0
    assert "exported" in text.read_text()


def test_a_spreadsheet_takes_no_statement_for_a_formula(policy: Path, capsys: Output) -> None:
    with Service.open(policy) as service:
        service.session("analyst", "=1+1").execute(COUNT)
    assert run("audit", policy, "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert rows[1]["session"] == "'=1+1"


def test_verifying_alone(policy: Path, capsys: Output) -> None:
    ask(policy, COUNT)
    assert run("audit", policy, "--verify") == 0
    out = capsys.readouterr().out
    assert out.startswith("sound: 3 records")
    with closing(sqlite3.connect(load(policy).ledger)) as db:
        db.execute("UPDATE account SET epsilon = 0")
        db.commit()
    assert run("audit", policy, "--verify", "--format", "json") == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["sound"]
    assert found["records"] == []
    assert "account policy/dataset" in found["problems"][0]


def test_an_export_of_a_ledger_that_was_never_served(policy: Path, tmp_path: Path) -> None:
    SqliteLedger.open(load(policy).ledger, lambda: datetime.now(UTC)).close()
    assert run("audit", policy, "-o", str(tmp_path / "a")) == 0


def test_edits_of_a_policy_are_held_against_the_ledger(policy: Path, capsys: Output) -> None:
    def check() -> str:
        assert main(["check", str(policy), "--against-ledger"]) == 0
        return capsys.readouterr().out

    assert "nothing was asked under it yet" in check()
    assert not load(policy).ledger.exists()
    ask(policy, COUNT, COUNT + " WHERE amount > 1")
    assert "no promise is weaker" in check()
    text = policy.read_text()
    policy.write_text(
        text.replace("{epsilon: 20,", "{epsilon: 30,").replace("per: month", "per: day")
    )
    said = check()
    assert "weaker than when the policy was served last" in said
    assert "the data set: epsilon is 30; it was 20" in said
    assert "role analyst: it renews every day; before, every month" in said
    policy.write_text(text.replace("session: {epsilon: 1}", "session: {epsilon: 0.1}"))
    assert main(["check", str(policy), "--against-ledger"]) == 1
    assert "below what is spent" in capsys.readouterr().err


def test_a_ledger_without_a_policy_yet(policy: Path, capsys: Output) -> None:
    SqliteLedger.open(load(policy).ledger, lambda: datetime.now(UTC)).close()
    assert main(["check", str(policy), "--against-ledger"]) == 0
    assert "nothing was asked under it yet" in capsys.readouterr().out


TILES = """
-- a dashboard
SELECT COUNT(*) FROM orders;
SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel;
SELECT COUNT(*) AS "n; all", SUM(amount) FROM orders;
SELECT city, COUNT(*) FROM customers GROUP BY city;
SELECT MODE(channel) FROM orders;
SELECT COUNT(*) FROM countries;
SET dpsql.epsilon = 0.01;
SELECT COUNT(*) FROM orders WHERE channel = 'web';
"""


def prices(out: str) -> list[list[str]]:
    lines = [line.split() for line in out.splitlines()]
    return [line for line in lines if line and line[0].isdecimal()]


def test_a_dashboard_is_priced_as_it_would_be_paid(
    policy: Path, tmp_path: Path, capsys: Output
) -> None:
    script = tmp_path / "tiles.sql"
    script.write_text(TILES)
    assert run("explain", policy, "--role", "analyst", "--batch", str(script)) == 0
    out = capsys.readouterr().out
    to_pay = [line[-3] for line in prices(out)]
    assert to_pay == ["0.1", "0.1", "0.05", "0.1", "0.1", "0", "0"]
    assert [line[-4] for line in prices(out)][-1] == "0.01"
    assert "Together\n  epsilon 0.45" in out
    with Service.open(policy) as service:
        session = service.session("analyst")
        for sql in TILES.split(";\n")[:6]:
            session.execute(sql)
        session.execute("SET dpsql.epsilon = 0.01")
        reply = session.execute("SELECT COUNT(*) FROM orders WHERE channel = 'web'")
        assert reply.recalled
        spent = service.ledger.balances(session._accounts())[0].spent.epsilon
        assert spent == 450_000_000, "the price was right"
    assert run("explain", policy, "--role", "analyst", "--batch", str(script)) == 0
    out = capsys.readouterr().out
    assert {line[-3] for line in prices(out)} == {"0"}
    assert "Together\n  nothing; without stored answers epsilon 0.51" in out


def test_a_tile_that_would_be_refused_is_named(
    policy: Path, tmp_path: Path, capsys: Output
) -> None:
    script = tmp_path / "tiles.sql"
    script.write_text("SELECT nothing FROM orders; " + COUNT)
    assert run("explain", policy, "--role", "analyst", "--batch", str(script)) == 3
    out = capsys.readouterr().out
    assert "DP105" in out
    assert [line[-3] for line in prices(out)][1:] == ["0.1"]
    assert run("explain", policy, "--role", "analyst", "--batch", str(tmp_path / "none")) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_explain_lists_what_is_stored(policy: Path, capsys: Output) -> None:
    ask(policy, COUNT)
    assert (
        run("explain", policy, "--role", "analyst", "SELECT COUNT(*), SUM(amount) FROM orders") == 0
    )
    out = capsys.readouterr().out
    assert "What is stored already" in out
    assert "to pay: epsilon 0.05" in out
