"""Where an error is: every face counts characters of the statement from one, as the description says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from callers import Caller, caller
from endpoint import PASSWORD, ROLE, generous
from support.services import policy_file
from talk import SYNC, Client, FixedHouse, bind, execute, fields, messages, parse, query

from dpsql.cli import main
from dpsql.dbapi import Connection
from dpsql.diagnostics.refusal import Refused
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.http.openapi import description
from dpsql.service import Service

WRONG = {
    "SELECT ¿email FROM customers": "email",
    "SELECT ¿nope FROM orders": "nope",
    "¿) SELECT 1 FROM orders": ")",
    "SELECT COUNT(* ¿FROM orders": "FROM",
    "SELECT 'ünïcødé 🎈' AS t, ¿nope FROM orders": "nope",
    "SELECT COUNT(*)\nFROM orders\n\tWHERE ¿nope = 1": "nope",
    "SELECT COUNT(*) FROM ¿nothing": "nothing",
}
"""Statements with the place that is wrong marked, and what stands there."""


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service.open(policy_file("shop", "shop", generous)) as found:
        yield found


@pytest.fixture(scope="module")
def robot(service: Service) -> Caller:
    return caller(service, ROLE)


@pytest.fixture(scope="module")
def client(service: Service) -> Client:
    found = Client(FixedHouse(ServiceEndpoint(service, role_catalog)))
    found.login(ROLE, PASSWORD)
    return found


@pytest.mark.parametrize("marked", WRONG)
def test_every_face_counts_characters_from_one(
    service: Service, robot: Caller, client: Client, marked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sql, first = marked.replace("¿", ""), marked.index("¿") + 1
    assert sql[first - 1 :].startswith(WRONG[marked])
    with pytest.raises(Refused) as caught:
        Connection(service, service.session(ROLE)).cursor().execute(sql)
    assert caught.value.position == first
    assert _over_http(robot, sql) == first
    for data in (query(sql), parse("", sql) + bind("", "") + execute("") + SYNC):
        assert _on_the_wire(client.send(data)) == first
    assert _on_the_wire(client.send(query(f"SELECT 1; {sql}"))) == first + len("SELECT 1; ")
    assert main(["query", "--policy", str(service.policy.path), "--role", ROLE, sql]) == 3
    line, column = map(int, re.findall(r"at line (\d+), column (\d+)", capsys.readouterr().err)[0])
    before = sql[: first - 1]
    assert (line, column) == (before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)


def _over_http(robot: Caller, sql: str) -> int:
    said = robot.post("/v1/query", json={"sql": sql})
    assert said.status_code == 422
    found = said.json()
    document = description()
    described = document["components"]["schemas"]["Error"]
    jsonschema.Draft202012Validator(described).validate(found)
    position: int = found["position"]
    return position


def _on_the_wire(said: bytes) -> int:
    (error,) = (fields(body) for kind, body in messages(said) if kind == "E")
    return int(error["P"])


def test_the_description_says_what_the_first_position_is(robot: Caller) -> None:
    described = description()["components"]["schemas"]["Error"]["properties"]["position"]
    assert described["minimum"] == _over_http(robot, ") SELECT 1 FROM orders")
    assert "is 1" in described["description"]
    document = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert "`position` counts characters from one" in document
