"""Sums around a centre that was found: the output is the same function of sums and numbers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from support.corpus import SHOP
from support.measured import plan_of, request
from support.services import service

from dpsql.catalog.statistic import Total
from dpsql.ir.relations import Project, Stored, walk_relations
from dpsql.plan.nodes import HiddenMean, Plan
from dpsql.price import search
from dpsql.price.centres import centred_sums, with_centres
from dpsql.price.priced import Noised
from dpsql.release.intervals import sources

MEANS = "SELECT channel, AVG(amount), SUM(amount), COUNT(*) FROM orders GROUP BY channel"


def _plan(sql: str = MEANS) -> Plan:
    return plan_of(sql, SHOP)


@pytest.mark.parametrize(("sql", "sums"), [
    (MEANS, [(0, 1)]),
    ("SELECT SUM(amount) FROM orders", []),
    ("SELECT AVG(amount), AVG(amount) FILTER (WHERE amount > 9) FROM orders", [(0, 1), (2, 3)]),
    ("SELECT AVG(amount, contribution_bounds_per_group => (1, 2)) FROM orders", []),
    ("SELECT AVG(CASE WHEN amount > 9 THEN 5 ELSE 5 END) FROM orders", []),
])  # fmt: skip
def test_sums_beside_their_numbers_may_have_another_centre(
    sql: str, sums: list[tuple[int, int]]
) -> None:
    assert list(centred_sums(_plan(sql).measurements[0])) == sums


def test_only_the_asked_sums_move_and_their_columns_are_computed() -> None:
    plan = _plan()
    moved = with_centres(plan, {("m0", 0): Fraction(40)})
    [before], [after] = plan.measurements, moved.measurements
    first, second = before.statistics[0], after.statistics[0]
    assert isinstance(first, Total)
    assert isinstance(second, Total)
    assert (first.centre, second.centre) == (250, 40)
    assert before.statistics[1:] == after.statistics[1:]
    assert before.columns[0].number != after.columns[0].number
    assert before.columns[1:] == after.columns[1:]
    tables = [r for r in walk_relations(moved.output) if isinstance(r, Stored)]
    assert all(after.columns[0] in t.fields for t in tables)
    projects = [r for r in walk_relations(moved.output) if isinstance(r, Project)]
    assert any(before.columns[0] in p.fields for p in projects), "the old column is computed"
    assert len(list(sources(moved.output, moved.columns))) == len(plan.columns)
    assert with_centres(plan, {}) == plan


def test_a_mean_is_hidden_by_the_noise_of_its_number_as_well() -> None:
    plan = _plan()
    moved = with_centres(plan, {("m0", 0): Fraction(40)})
    for before, after in zip(
        plan.measurements[0].hidden, moved.measurements[0].hidden, strict=True
    ):
        assert isinstance(before, HiddenMean)
        assert isinstance(after, HiddenMean)
        assert after.half == before.half + 210


def test_a_sum_gets_more_of_the_budget_than_its_number() -> None:
    wanted = replace(request(3, 1), search="on", mechanism="laplace")
    plan = search.price_with_searches(_plan(), wanted)
    while plan.searches:
        plan = search.with_found(plan, tuple(250.0 if s.size is None else 9 for s in plan.searches))
    total, count = plan.parts[0].noised[:2]
    assert isinstance(total, Noised)
    assert isinstance(count, Noised)
    assert (total.weight, count.weight) == (Fraction(3, 2), Fraction(1, 2))
    assert plan.cost.epsilon == Fraction(8, 10)


QUESTIONS = (
    MEANS,
    "SELECT AVG(amount), STDDEV(amount), COUNT(*) FROM orders WHERE amount > 50",
    "SELECT AVG(a) FROM (SELECT channel, AVG(amount) AS a FROM orders GROUP BY channel) AS x",
    "SELECT channel, SUM(amount) / COUNT(amount) AS q FROM orders GROUP BY channel HAVING AVG(amount) > 1 ORDER BY q DESC",
    "SELECT city, AVG(age) AS a, SUM(age), COUNT(*) FROM customers GROUP BY city ORDER BY a",
    "SELECT channel, placed > DATE '2024-07-01' AS late, AVG(amount) FROM orders GROUP BY ROLLUP (1, 2)",
    "SELECT REGR_SLOPE(amount, amount + 1), CORR(amount, amount), COUNT(DISTINCT customer_id) FROM orders",
    "SELECT placed, COUNT(DISTINCT customer_id) AS n FROM orders GROUP BY placed ORDER BY n DESC LIMIT 3",
)


@pytest.mark.parametrize("setting", ["auto", "on", "off"])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_answers_without_noise_are_those_of_plain_sql(sql: str, setting: str) -> None:
    """At a huge epsilon, what is found clips nobody, and a centre moves nothing."""
    here = service("oracle", "shop")
    session = here.session()
    session.execute("SET dpsql.search = off")
    plain = session.execute(sql).table.to_pylist()
    session.execute(f"SET dpsql.search = {setting}")
    session.execute("SET dpsql.fresh = on")
    found = session.execute(sql).table.to_pylist()
    assert len(found) == len(plain)
    for one, other in zip(found, plain, strict=True):
        assert one == {
            k: pytest.approx(v, rel=1e-6, abs=1e-6) if isinstance(v, float) else v
            for k, v in other.items()
        }
