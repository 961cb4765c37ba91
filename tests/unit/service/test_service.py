"""Services and sessions: what opens, who may ask, what a session is told."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import duckdb
import pytest
from support.datasets import script
from support.services import noon, policy_file, real_service, service

from dpsql.diagnostics.refusal import DataBreaksPolicy, OutOfBudget, Refused, SourceMismatch
from dpsql.service import Service

COUNT = "SELECT COUNT(*) FROM customers"


def test_the_only_role_need_not_be_named() -> None:
    assert service("oracle", "shop").session().role == "oracle"


@pytest.mark.parametrize("role", [None, "nobody"])
def test_other_roles_must_be(role: str | None) -> None:
    with pytest.raises(Refused) as caught:
        service("shop", "shop").session(role)
    assert caught.value.code == "DP602"


def test_a_policy_that_its_source_contradicts_opens_nothing() -> None:
    wrong = policy_file("shop", "shop", lambda t: t.replace("age: {type", "height: {type"))
    with pytest.raises(SourceMismatch):
        Service.open(wrong)
    assert Service.open(policy_file("shop", "shop")).session("analyst").budget()


def test_a_public_key_that_is_not_unique_opens_nothing() -> None:
    """A join on it would multiply a unit's rows beyond what is priced."""
    declared = policy_file(
        "shop",
        "shop",
        lambda t: t.replace("countries: {public: true}", "countries: {public: true, key: country}"),
    )
    assert Service.open(declared)
    with duckdb.connect(str(declared.parent / "twice.duckdb")) as connection:
        connection.execute(script("shop").replace("country VARCHAR PRIMARY KEY", "country VARCHAR"))
        connection.execute("INSERT INTO countries VALUES ('de', 'asia', 1)")
    declared.write_text(declared.read_text().replace("shop.duckdb", "twice.duckdb"))
    with pytest.raises(DataBreaksPolicy):
        Service.open(declared)


@pytest.mark.parametrize(
    "module", ["dpsql.service", "dpsql.pipeline", "dpsql.dbapi", "dpsql.release.noise"]
)
def test_every_layer_can_be_imported_first(module: str) -> None:
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True, timeout=60)


def test_what_is_spent_is_gone_and_what_is_left_is_told() -> None:
    with real_service("shop", "shop") as opened:
        session = opened.session("pure")
        before = session.budget()
        reply = session.execute(COUNT)
        assert reply.cost.epsilon == Fraction(1, 2)
        for then, now in zip(before, reply.remaining, strict=True):
            assert now.spent_epsilon >= then.spent_epsilon
            assert now.left_epsilon <= then.left_epsilon
        assert reply.remaining[-1].left_epsilon == Fraction(3, 2)


def test_a_session_ends_when_its_budget_does_and_no_other_name_renews_the_role() -> None:
    with real_service("shop", "shop") as opened:
        session = opened.session("pure")
        session.execute("SET dpsql.fresh = on")
        for _ in range(4):
            session.execute(COUNT)
        with pytest.raises(OutOfBudget):
            session.execute(COUNT)
        again = opened.session("pure")
        again.execute("SET dpsql.fresh = on")
        with pytest.raises(OutOfBudget):
            again.execute(COUNT)


def test_a_query_may_cost_less_but_not_more_than_its_limit() -> None:
    session = service("shop", "shop").session("analyst")
    session.execute("SET dpsql.epsilon = 0.01")
    assert session.execute(COUNT).cost.epsilon == Fraction(1, 100)
    session.execute("SET dpsql.epsilon = 0.2")
    with pytest.raises(Refused):
        session.execute(COUNT)


def test_an_error_may_be_asked_for_instead_of_an_epsilon() -> None:
    session = service("shop", "shop").session("analyst")
    session.execute("SET dpsql.max_error = 60")
    plan = session.prepare(COUNT)
    assert plan.cost.epsilon < Fraction(1, 10)
    item = plan.parts[0].noised[0]
    assert 54 <= item.half_width <= 60
    session.execute("SET dpsql.max_error = 1")
    with pytest.raises(Refused) as caught:
        session.execute(COUNT)
    assert caught.value.code == "DP404"
    session.execute(caught.value.instead)
    assert session.execute(COUNT).cost.epsilon <= Fraction(1, 10)


def test_intervals_may_be_columns() -> None:
    session = service("shop", "shop").session("analyst")
    session.execute("SET dpsql.intervals = on")
    reply = session.execute("SELECT country, COUNT(*) AS n FROM customers GROUP BY country")
    assert [c.name for c in reply.columns] == ["country", "n", "n_low", "n_high"]
    assert all(
        low <= n <= high
        for _, n, low, high in zip(*(c.to_pylist() for c in reply.table.columns), strict=True)
    )


def test_a_stopped_clock_gives_the_current_date() -> None:
    session = service("shop", "shop").session("analyst")
    reply = session.execute("SELECT CURRENT_DATE AS today, country FROM countries LIMIT 1")
    assert str(reply.table.column(0)[0]) == str(noon().date())


def test_a_role_is_told_of_the_tables_it_sees_and_no_others() -> None:
    reply = service("far", "trade").session("analyst").execute("SELECT * FROM dpsql.policy")
    assert set(reply.table.column(0).to_pylist()) == {"lineitem", "orders", "part", "region"}
    everything = service("far", "trade").session("strict").execute("SELECT * FROM dpsql.policy")
    assert "returns" in everything.table.column(0).to_pylist()


def test_an_error_says_nothing_of_values_that_are_only_shown() -> None:
    """They cost what they cost without one."""
    with service("oracle", "shop") as opened:
        session = opened.session()
        plain = session.prepare("SELECT DISTINCT city FROM customers")
        session.execute("SET dpsql.max_error = 5")
        asked = session.prepare("SELECT DISTINCT city FROM customers")
        assert asked.cost == plain.cost
