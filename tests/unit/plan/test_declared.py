"""MIN and MAX from the policy's word: without rows, without charge, and never unsaid."""

from __future__ import annotations

import dataclasses
import json
from datetime import date

import pyarrow as pa
import pytest
from support.corpus import World
from support.measured import plan_of
from support.services import FreeLedger, SpyEngine, noon, policy, policy_file, service

import dpsql
from dpsql.cli import main
from dpsql.engines.facts import Facts
from dpsql.service import Service, plain

DASHBOARDS = World("dashboards", "shop")
NOTE = "{0} of orders.placed is what the policy declares; no rows were read"


def without_views(text: str) -> str:
    """The policy before it is held against its source, which would fill in public columns."""
    head, _, rest = text.partition("views:\n")
    return (head + "accounts:" + rest.partition("accounts:")[2]).partition("  viewer:")[0]


def measured(sql: str) -> int:
    """How many statistics are measured."""
    return sum(len(m.statistics) for m in plan_of(sql, DASHBOARDS).measurements)


@pytest.mark.parametrize("sql", [
    "SELECT MIN(placed), MAX(placed) FROM orders",
    "SELECT MIN(CAST(placed AS timestamp)) FROM (SELECT * FROM orders) AS t",
    "SELECT MAX(date_trunc('month', placed) + INTERVAL '1 month') FROM orders WHERE placed IS NOT NULL",
    "SELECT MAX(t.last) FROM (SELECT placed FROM orders) AS t(last)",
    "SELECT MAX(o.last) FROM orders AS o(c, a, last)",
    "SELECT MIN(age - 2), MAX(-age * 3) FROM customers",
    "SELECT MIN(country), MAX(country) FROM customers",
    "SELECT MAX(placed) FROM orders HAVING MAX(placed) > DATE '2020-01-01'",
    "SELECT DISTINCT country FROM customers ORDER BY 1 LIMIT 1000",
])  # fmt: skip
def test_neither_data_nor_ledger_is_asked(sql: str) -> None:
    def asked(_: str) -> pa.Table:
        return pa.table({"o0": ["at"]})

    engine, ledger = SpyEngine(asked, public=asked), FreeLedger()
    here = policy("dashboards", "shop", without_views)
    opened = Service(here, engine, ledger, clock=noon, facts=Facts())
    engine.calls.clear()
    session = opened.session("analyst")
    assert "cost: nothing" in session.explain(sql)
    if "DISTINCT" not in sql:
        reply = session.execute(sql)
        assert reply.notes
        assert not reply.cost.epsilon
    assert engine.calls == ledger.calls == []


@pytest.mark.parametrize("sql", [
    "SELECT MIN(placed) FROM orders WHERE placed > DATE '2024-03-01'",
    "SELECT MIN(placed) FROM orders WHERE amount IS NOT NULL AND channel = 'web'",
    "SELECT MIN(placed) FROM orders JOIN customers USING (customer_id)",
    "SELECT MIN(placed) FILTER (WHERE channel = 'web') FROM orders",
    "SELECT channel, MIN(placed) FROM orders GROUP BY channel",
    "SELECT MIN(amount) FROM orders",
    "SELECT MIN(age % 7) FROM customers",
    "SELECT MIN(100 / age) FROM customers",
    "SELECT MIN(age * age) FROM customers",
    "SELECT MIN(n) FROM (SELECT customer_id, MIN(seconds) AS n FROM visits GROUP BY customer_id) AS t",
    "SELECT MEDIAN(age) FROM customers",
    "SELECT MIN(length(country)) FROM customers",
    "SELECT MIN(extract(year FROM placed)) FROM orders",
])  # fmt: skip
def test_what_hangs_on_rows_is_measured(sql: str) -> None:
    assert measured(sql) == 1
    assert not any("no rows were read" in note for note in plan_of(sql, DASHBOARDS).notes)


def test_a_level_without_keys_is_measured_like_the_others() -> None:
    sql = "SELECT channel, MIN(placed) FROM orders GROUP BY ROLLUP (channel)"
    assert measured(sql) == 2


def test_what_is_not_declared_is_measured_beside_it() -> None:
    sql = "SELECT COUNT(*) AS n, MAX(placed) AS last FROM orders"
    assert measured(sql) == 1
    reply = service("dashboards", "shop", seed=1).session("analyst").execute(sql)
    assert reply.table.column(1).to_pylist() == [date(2025, 12, 31)]
    cut = "rows beyond 50 a customer do not count (max_rows_per_unit)"
    assert reply.notes == (NOTE.format("MAX"), cut)
    assert json.loads(plain.to_json(reply))["notes"] == [NOTE.format("MAX"), cut]


def test_a_declared_list_that_turns_out_empty_is_no_answer() -> None:
    opened = service("dashboards", "shop")
    opened.public_values = dict.fromkeys(opened.public_values, ())
    with pytest.raises(Exception, match="MIN"):
        opened.session("analyst").prepare("SELECT MIN(country) FROM customers")


def test_the_switch_is_the_policys_meaning() -> None:
    found = policy("dashboards", "shop", without_views)
    other = policy(
        "dashboards", "shop", lambda t: without_views(t).replace(", extremes: declared", "")
    )
    assert found.version != other.version
    assert dataclasses.asdict(other.tables["orders"].columns["placed"])["extremes"] == "measured"


def test_faces_tell_it(capsys: pytest.CaptureFixture[str]) -> None:
    path = policy_file("dashboards", "shop")
    sql = "SELECT MAX(placed) AS last FROM orders"
    assert main(["query", "--policy", str(path), "--role", "analyst", sql]) == 0
    assert NOTE.format("MAX") in capsys.readouterr().out
    assert main(["explain", "--policy", str(path), "--role", "analyst", sql]) == 0
    assert f"To know\n  {NOTE.format('MAX')}" in capsys.readouterr().out
    with dpsql.connect(path, role="analyst") as connection:
        cursor = connection.execute(sql)
        assert cursor.notes == (NOTE.format("MAX"),)
        assert connection.execute("SELECT 1").notes == ()
