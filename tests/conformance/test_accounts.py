"""What is left is told by the kind of each account, whichever of them a policy writes, in every face."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml
from callers import Caller, caller
from support.datasets import policy_text
from support.services import policy_file

from dpsql.cli import main
from dpsql.dbapi import Connection
from dpsql.serve.http.openapi import description
from dpsql.service import Service, plain

SQL = "SELECT COUNT(*) AS n FROM orders"
WRITTEN: dict[str, Any] = {"tables": {"orders": 7, "customers": 8}, "role": 5, "session": 4}
"""Epsilons, all different, of accounts that a policy may write or leave out."""
SUBSETS = [
    frozenset(chosen)
    for count in range(len(WRITTEN) + 1)
    for chosen in itertools.combinations(WRITTEN, count)
]


def _text(chosen: frozenset[str]) -> str:
    """The shop's policy with these accounts only, and that of the dataset, which each policy has."""
    policy = yaml.safe_load(policy_text("shop"))
    policy["accounts"] = {"dataset": {"epsilon": 9, "delta": 0}}
    role: dict[str, Any] = {"query": {"epsilon": 0.5}}
    if "role" in chosen:
        role["epsilon"] = WRITTEN["role"]
    if "session" in chosen:
        role["session"] = {"epsilon": WRITTEN["session"]}
    for table, epsilon in WRITTEN["tables"].items() if "tables" in chosen else ():
        policy["tables"][table]["account"] = {"epsilon": epsilon}
    policy["roles"] = {"analyst": role}
    return yaml.safe_dump(policy, sort_keys=False)


def _expected(chosen: frozenset[str]) -> dict[str, Any]:
    """The total of each account: what is not written is as large as what holds it."""
    role = WRITTEN["role"] if "role" in chosen else 9
    tables = WRITTEN["tables"] if "tables" in chosen else {}
    session = WRITTEN["session"] if "session" in chosen else role
    return {"dataset": 9, "tables": tables, "role": role, "session": session}


def _totals(told: dict[str, Any]) -> dict[str, Any]:
    return {
        kind: {t: a["total"]["epsilon"] for t, a in account.items()}
        if kind == "tables"
        else account["total"]["epsilon"]
        for kind, account in told.items()
    }


def _titles(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for kind, account in told.items():
        if kind == "tables":
            yield from ((f'table "{table}"', own["account"]) for table, own in account.items())
        else:
            yield (
                {"dataset": "the dataset", "role": 'role "analyst"'}.get(
                    kind, 'session "default" of role "analyst"'
                ),
                account["account"],
            )


@pytest.mark.parametrize("chosen", SUBSETS, ids=lambda c: "+".join(sorted(c)) or "dataset")
def test_accounts_are_told_by_kind(chosen: frozenset[str]) -> None:
    with Service.open(policy_file("shop", "shop", lambda _: _text(chosen))) as service:
        connection = Connection(service, service.session("analyst"))
        for remaining in (*_from_python(connection), *_from_http(caller(service, "analyst"))):
            assert _totals(remaining) == _expected(chosen)
            assert all(named == title for named, title in _titles(remaining))
        left = connection.budget()
        assert left["tables"].get("orders", {"epsilon": 6.5})["epsilon"] == 6.5
        assert left["tables"].get("customers", {"epsilon": 8})["epsilon"] == 8, "not asked about"
        assert left["dataset"]["epsilon"] == 8.5


def _from_python(connection: Connection) -> Iterator[dict[str, Any]]:
    yield connection.budget()
    for sql in (SQL, "SELECT * FROM dpsql.policy", "SHOW dpsql.epsilon"):
        cursor = connection.cursor().execute(sql)
        assert cursor.remaining == connection.budget()
        yield cursor.remaining


def _from_http(robot: Caller) -> Iterator[dict[str, Any]]:
    """As the description says."""
    said = description()["paths"]["/v1/budget"]["get"]["responses"]["200"]
    described = jsonschema.Draft202012Validator(said["content"]["application/json"]["schema"])
    for found in (
        robot.get("/v1/budget").json(),
        robot.post("/v1/query", json={"sql": SQL}).json()["remaining"],
        robot.post("/v1/query", json={"sql": "SHOW dpsql.budget"}).json()["remaining"],
    ):
        described.validate(found)
        yield found


def test_the_command_tells_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = frozenset(WRITTEN)
    path = policy_file("shop", "shop", lambda _: _text(chosen))
    assert main(["query", "--policy", str(path), "--format", "json", SQL]) == 0
    assert _totals(json.loads(capsys.readouterr().out)["remaining"]) == _expected(chosen)


def test_a_service_account_is_told_apart() -> None:
    """Who has taken another role spends from both: each account has its own place."""

    def change(text: str) -> str:
        return text.replace("  pure:\n", "  pure:\n    may_become: [analyst]\n")

    with Service.open(policy_file("shop", "shop", change)) as service:
        told = plain.describe_remaining(service.session("analyst", behind="pure").budget())
        assert set(told) == {"dataset", "tables", "role", "session", "service_account"}
        assert told["role"]["account"] == 'role "analyst"'
        assert told["session"]["account"] == 'session "default" of role "analyst"'
        behind = told["service_account"]
        assert [a["account"] for a in behind.values()] == [
            'role "pure"', 'session "default" of role "pure"',
        ]  # fmt: skip


def test_the_command_names_an_account_that_pays(capsys: pytest.CaptureFixture[str]) -> None:
    """Not the account of a table that the statement does not read, however little is in it."""

    def change(text: str) -> str:
        return text.replace("  visits:\n", "  visits:\n    account: {epsilon: 0.001, delta: 0}\n")

    path = policy_file("shop", "shop", change)
    assert "account: {epsilon: 0.001" in path.read_text()
    for sql in ("SELECT COUNT(*) FROM orders", "SELECT COUNT(*) FROM countries"):
        assert main(["query", "--policy", str(path), "--role", "pure", sql]) == 0
        said = "".join(capsys.readouterr())
        assert "left in" in said
        assert "visits" not in said
