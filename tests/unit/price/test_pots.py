"""Differential privacy clauses: each is a budget of its own, and bounds what it says."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from support.corpus import SHOP, World
from support.measured import plan_of
from support.services import real_service, service

from dpsql.bound import GroupCaps
from dpsql.diagnostics.refusal import Refused
from dpsql.price.price import price
from dpsql.price.priced import PricedPlan
from dpsql.price.request import Request
from dpsql.reuse.pieces import pieces

ONE = Request(Fraction(1), Fraction(1, 10**6), groups=3)
CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({}) "


def priced(sql: str, request: Request = ONE, world: World = SHOP) -> PricedPlan:
    return price(plan_of(sql, world), request)


def test_a_clause_says_what_its_answer_costs() -> None:
    plan = priced(
        CLAUSE.format("epsilon = 0.25, delta = 1e-7") + "COUNT(*), SUM(age) FROM customers"
    )
    assert plan.cost.epsilon == Fraction(1, 4)
    assert plan.cost.delta == 0
    by_city = (
        CLAUSE.format("epsilon = 2, delta = 1e-9") + "city, COUNT(*) FROM customers GROUP BY 1"
    )
    assert priced(by_city).cost.delta == Fraction(1, 10**9)
    assert priced(by_city).cost.epsilon == 2


def test_what_a_clause_leaves_open_is_the_session_s() -> None:
    assert (
        priced(CLAUSE.format("") + "COUNT(*) FROM customers").cost
        == priced("SELECT COUNT(*) FROM customers").cost
    )


def test_each_clause_is_a_budget_of_its_own_and_they_add() -> None:
    sides = (
        CLAUSE.format("epsilon = 0.5") + "COUNT(*) AS n FROM customers",
        CLAUSE.format("epsilon = 0.5") + "COUNT(*) AS n FROM orders",
        "SELECT COUNT(*) AS n FROM visits",
        "SELECT SUM(seconds) AS n FROM visits",
    )
    plan = priced(" UNION ALL ".join(sides))
    assert plan.cost.epsilon == 2
    alone = [priced(side) for side in sides[:2]]
    drawn = [p.noised[0].noise for p in plan.parts]
    assert drawn[:2] == [p.parts[0].noised[0].noise for p in alone]
    half = priced(f"{sides[2]} UNION ALL {sides[3]}")
    assert drawn[2:] == [p.noised[0].noise for p in half.parts]
    assert len(plan.events) == 4
    assert plan.cost == alone[0].cost + alone[1].cost + half.cost


def test_the_same_question_under_two_clauses_is_two_measurements() -> None:
    one, two = (CLAUSE.format(f"epsilon = 0.{d}") + "COUNT(*) AS n FROM customers" for d in (1, 2))
    plan = priced(f"{one} UNION ALL {two}")
    assert len(plan.parts) == 2
    assert plan.cost.epsilon == Fraction(3, 10)
    again = f"WITH a AS ({one}) SELECT x.n, y.n FROM a AS x CROSS JOIN a AS y"
    assert priced(again).cost.epsilon == Fraction(1, 10), "a clause that is read twice is paid once"


def test_clauses_may_take_different_noise() -> None:
    many = ", ".join(f"COUNT(*) FILTER (WHERE age > {a}) AS n{a}" for a in range(20, 60))
    sides = (
        CLAUSE.format("epsilon = 1, delta = 1e-4") + many + " FROM customers",
        CLAUSE.format("epsilon = 1, delta = 0") + many + " FROM customers",
    )
    plan = priced(" UNION ALL ".join(sides))
    assert plan.family == "gaussian and laplace"
    assert plan.cost == priced(sides[0]).cost + priced(sides[1]).cost


def test_a_clause_never_costs_more_than_the_role_may_spend() -> None:
    with real_service("shop", "shop") as opened:
        session = opened.session("analyst")
        with pytest.raises(Refused) as caught:
            session.execute(CLAUSE.format("epsilon = 3") + "COUNT(*) FROM customers")
        assert caught.value.code == "DP403"
        both = " UNION ALL ".join(
            CLAUSE.format("epsilon = 0.06") + f"COUNT(*) AS n FROM {t}"
            for t in ("orders", "visits")
        )
        with pytest.raises(Refused) as caught:
            session.execute(both)
        assert caught.value.code == "DP403"
        with pytest.raises(Refused) as caught:
            session.execute(
                CLAUSE.format("delta = 0.1") + "city, COUNT(*) FROM customers GROUP BY 1"
            )
        assert caught.value.code == "DP403"


def test_a_threshold_asked_for_needs_laplace_and_delta() -> None:
    sql = CLAUSE.format("group_selection_strategy = LAPLACE_THRESHOLD")
    sql += "country, COUNT(*) FROM customers GROUP BY country"
    assert priced(sql).family == "laplace"
    for request, code in (
        (replace(ONE, mechanism="gaussian"), "DP405"),
        (replace(ONE, allowed=("gaussian",)), "DP405"),
        (replace(ONE, delta=Fraction(0)), "DP501"),
    ):
        with pytest.raises(Refused) as caught:
            priced(sql, request)
        assert caught.value.code == code
    assert priced(sql.replace("country, ", "").replace(" GROUP BY country", "")).cost.delta == 0


def test_a_least_number_of_units_raises_the_threshold() -> None:
    sql = CLAUSE + "city, COUNT(*) FROM customers GROUP BY city"
    plain, raised = (priced(sql.format(o)) for o in ("", "min_privacy_units_per_group = 11"))
    first, second = plain.parts[0].selection, raised.parts[0].selection
    assert first is not None
    assert second is not None
    assert second.threshold == first.threshold + 10
    [kept], [wanted] = pieces(plain, "v"), pieces(raised, "v")
    assert kept.family != wanted.family, "a stored answer with smaller groups is another answer"


def test_an_answer_under_a_clause_is_recalled_by_plain_sql_and_the_other_way() -> None:
    [plain] = pieces(priced("SELECT COUNT(*) FROM customers"), "v")
    [better] = pieces(priced(CLAUSE.format("epsilon = 2") + "COUNT(*) FROM customers"), "v")
    assert plain.family == better.family
    assert plain.served_by(better.noise)
    assert not better.served_by(plain.noise)


def test_an_explicit_limit_on_groups_limits_groups() -> None:
    sql = CLAUSE + "channel, COUNT(*) FROM orders GROUP BY channel"
    assert priced(sql.format("")).parts[0].bounding.name == "row weights"
    bounding = priced(sql.format("max_groups_contributed = 2")).parts[0].bounding
    assert isinstance(bounding, GroupCaps)
    assert (bounding.groups, bounding.limit) == (2, True)


@pytest.mark.parametrize("options", ["", "max_rows_contributed = 2", "max_groups_contributed = 1"])
def test_grouping_sets_measure_capped_levels_apart(options: str) -> None:
    """A unit's capped part of a total is not the sum of its capped parts."""
    sql = "channel, SUM(amount, contribution_bounds_per_group => (0, 100)) FROM orders"
    plan = priced(CLAUSE.format(options) + sql + " GROUP BY ROLLUP (channel)")
    assert len(plan.parts) == 2


def test_bounds_of_a_row_make_what_has_none_bounded() -> None:
    sql = "SELECT SUM(LENGTH(city), contribution_bounds_per_row => (1, 9)) FROM customers"
    (part,) = priced(sql).parts
    assert part.noised[0].sensitivity.l1 == 9
    with pytest.raises(Refused) as caught:
        priced("SELECT SUM(LENGTH(city), contribution_bounds_per_group => (1, 9)) FROM customers")
    assert caught.value.code == "DP203"


def answers(sql: str) -> list[tuple[object, ...]]:
    reply = service("oracle", "shop").session().execute(sql)
    return [tuple(row.values()) for row in reply.table.to_pylist()]


def test_quantiles_are_taken_of_clamped_values() -> None:
    sql = (
        "SELECT MAX(age, contribution_bounds_per_row => (30, 40)),"
        " MIN(age, contribution_bounds_per_row => (30, 40)),"
        " PERCENTILE_CONT(0.5, contribution_bounds_per_row => (90, 95)) WITHIN GROUP (ORDER BY age),"
        " PERCENTILE_CONT(amount * 0 + age, 0.5, contribution_bounds_per_row => (0.5, 0.75)),"
        " MAX(age) FROM customers JOIN orders USING (customer_id)"
    )
    ((highest, lowest, middle, fraction, whole),) = answers(sql)
    assert (highest, lowest) == (40, 30)
    assert middle == pytest.approx(90)
    assert fraction == pytest.approx(0.75, abs=1e-4)
    assert isinstance(whole, int)
    assert whole > 40


def test_a_listed_value_is_clamped_too() -> None:
    sql = (
        "SELECT SUM(CASE channel WHEN 'web' THEN 1 WHEN 'shop' THEN 5 ELSE 9 END,"
        " contribution_bounds_per_row => (2, 6)) AS n FROM orders"
    )
    plain = (
        "SELECT SUM(CASE channel WHEN 'web' THEN 2 WHEN 'shop' THEN 5 ELSE 6 END) AS n FROM orders"
    )
    assert answers(sql) == answers(plain)
