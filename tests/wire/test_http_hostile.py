"""Over HTTP, too, a database and its neighbour look the same: status, words, columns, price, groups."""

from __future__ import annotations

import functools
from typing import Any

import duckdb
import pytest
from callers import Caller
from endpoint import ROLE, generous
from support.datasets import folder, policy_text, script
from support.hostile import HOSTILE
from support.services import noon

from dpsql.serve import users
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.http.app import Face
from dpsql.service import Service

VICTIM = 106
SAMPLE = [h for i, h in enumerate(HOSTILE) if i % 9 == 0 and h.sql.isprintable()]


@functools.cache
def caller(*, without: bool) -> Caller:
    """A robot's client of the shop of every broken declaration, perhaps without one person."""
    place = folder() / f"http-hostile-{without}"
    place.mkdir()
    with duckdb.connect(str(place / "shop.duckdb")) as connection:
        connection.execute(script("dirty"))
        for table in ("customers", "orders", "visits") if without else ():
            connection.execute(f"DELETE FROM {table} WHERE customer_id = {VICTIM}")
    (place / "policy.yaml").write_text(generous(policy_text("shop")))
    service = Service.open(place / "policy.yaml", clock=noon)
    user, token = users.with_token("robot", ROLE)
    users.write(service.policy.front.users, [user])
    house = ServiceEndpoint(service, role_catalog)
    return Caller(Face(lambda: house.snapshots).app(), token)


def said(client: Caller, sql: str) -> tuple[int, Any]:
    """Everything but values: what a refusal says, or what of an answer is public."""
    response = client.post("/v1/query", json={"sql": sql})
    body = response.json()
    if response.status_code != 200:
        return response.status_code, body
    return 200, {key: body[key] for key in ("columns", "cost", "remaining", "recalled")}


def test_neighbours_look_the_same_over_http() -> None:
    wrong, answered = [], 0
    assert len(SAMPLE) > 50
    for hostile in SAMPLE:
        one, other = (said(caller(without=without), hostile.sql) for without in (False, True))
        if one != other:
            wrong.append(f"{hostile}: {one} / {other}")
        answered += one[0] == 200
    assert not wrong, "\n".join(wrong)
    assert answered > 10, "to refuse everything would be no answer"


def test_what_http_says_of_a_fault_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: an engine that fails on one person's row alone."""
    from dpsql.engines.duckdb.engine import DuckDB

    real = DuckDB.measure
    sql = "SELECT COUNT(*) FROM customers WHERE customer_id = 106 AND CAST(email AS INTEGER) > 1"
    plain = [said(caller(without=without), sql)[0] for without in (False, True)]
    assert plain == [200, 200]
    monkeypatch.setattr(
        DuckDB, "measure", lambda self, text, values: real(self, text.replace("TRY_CAST(", "CAST("), values)
    )  # fmt: skip
    failing = sql.replace("> 1", "> 2")
    assert said(caller(without=False), failing) != said(caller(without=True), failing)
