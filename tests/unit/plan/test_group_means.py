"""Means over many groups are totals of rows by a measured number of groups; over few they are not."""

from __future__ import annotations

import pytest
from support.corpus import SHOP
from support.measured import plan_of
from support.services import service

from dpsql.catalog.statistic import Values
from dpsql.plan.nodes import Plan

GROUPS = "(SELECT country, age, COUNT(*) AS n, SUM(age) AS s, MAX(age) AS m FROM customers GROUP BY country, age)"
NOTE = "country, age: averaged over the groups with rows, whose number is measured"


def _plan(sql: str) -> Plan:
    return plan_of(sql, SHOP)


@pytest.mark.parametrize("sql", [
    f"SELECT AVG(n) FROM {GROUPS} AS t",
    f"SELECT AVG(s), COUNT(*), COUNT(n), COUNT(s), SUM(n) FROM {GROUPS} AS t WHERE age > 20",
    f"SELECT age < 40 AS young, AVG(n) FILTER (WHERE country <> 'de') FROM {GROUPS} AS t GROUP BY age < 40",
])  # fmt: skip
def test_means_over_many_groups_are_of_the_rows(sql: str) -> None:
    plan = _plan(sql)
    [measurement] = plan.measurements
    assert any(isinstance(s, Values) for s in measurement.statistics)
    assert NOTE in plan.notes


@pytest.mark.parametrize("sql", [
    f"SELECT country, AVG(n) FROM {GROUPS} AS t GROUP BY country",
    f"SELECT AVG(n) FROM {GROUPS} AS t WHERE n > 2",
    f"SELECT AVG(n), MAX(n) FROM {GROUPS} AS t",
    f"SELECT AVG(n), AVG(m) FROM {GROUPS} AS t",
    f"SELECT AVG(n + 1) FROM {GROUPS} AS t",
    f"SELECT AVG(age) FROM {GROUPS} AS t",
    f"SELECT AVG(DISTINCT n) FROM {GROUPS} AS t",
    f"SELECT AVG(n) FILTER (WHERE n > 3) FROM {GROUPS} AS t",
    f"SELECT AVG(n), CORR(n, s) FROM {GROUPS} AS t",
    f"SELECT SUM(n), COUNT(s) FROM {GROUPS} AS t",
    f"SELECT AVG(n) FROM {GROUPS} AS t GROUP BY ROLLUP (country)",
    "SELECT AVG(n) FROM (SELECT country, age, COUNT(DISTINCT email) AS n FROM customers GROUP BY country, age) AS t",
    "SELECT AVG(n) FROM (SELECT channel, placed, COUNT(*) AS n FROM orders GROUP BY channel, placed) AS t",
    "SELECT AVG(n) FROM (SELECT city, age, COUNT(*) AS n FROM customers GROUP BY city, age) AS t",
    "SELECT AVG(n) FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) AS t",
])  # fmt: skip
def test_others_are_of_groups_that_are_told_apart(sql: str) -> None:
    assert NOTE not in _plan(sql).notes


def test_groups_are_kept_where_that_is_asked() -> None:
    session = service("shop", "shop", seed=1).session("analyst")
    sql = f"SELECT AVG(n) FROM {GROUPS} AS t"
    assert session.execute(sql).notes == (NOTE,)
    session.execute("SET dpsql.empty_groups = 'keep'")
    assert session.execute(sql).notes == (
        "country, age: all public groups take part, those without rows too",
        "values outside 18 .. 100 count as the nearer end",
    )


def test_more_groups_than_the_policy_allows_are_averaged_all_the_same() -> None:
    here = service("shop", "shop", lambda text: text + "limits: {max_cells: 500}\n")
    assert here.session("analyst").execute(f"SELECT AVG(n) FROM {GROUPS} AS t").notes == (NOTE,)


def test_the_mean_is_as_exact_as_its_numbers() -> None:
    """At epsilon 1 the number of rows and of groups are within 20: no group has units enough."""
    session = service("shop", "shop", seed=3).session("analyst")
    session.execute("SET dpsql.epsilon = 0.1")
    [mean] = session.execute(f"SELECT AVG(n) FROM {GROUPS} AS t").table.column(0).to_pylist()
    assert mean == pytest.approx(2000 / 666, rel=0.25)
