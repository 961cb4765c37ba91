"""Public groups without rows: where they stay, where they take no part, what that costs and says."""

from __future__ import annotations

import pytest
from support.corpus import SHOP
from support.measured import plan_of
from support.services import service

from dpsql.catalog.statistic import Rows, Units
from dpsql.plan.nodes import Plan
from dpsql.service import Session

BY_AGE = "(SELECT country, age, COUNT(*) AS n, SUM(age) AS s FROM customers GROUP BY country, age)"
ORDERS = "(SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel)"
TOTAL = "(SELECT COUNT(*) AS everyone FROM customers)"


def _plan(sql: str) -> Plan:
    return plan_of(sql, SHOP)


def _counts_units(plan: Plan) -> bool:
    return any(m.unit_count is not None for m in plan.measurements)


@pytest.mark.parametrize("sql", [
    f"SELECT country, AVG(s) FROM {BY_AGE} AS t GROUP BY country",
    f"SELECT country, MIN(n) FROM {BY_AGE} AS t GROUP BY country",
    f"SELECT country, SUM(n + 1) FROM {BY_AGE} AS t GROUP BY country",
    f"SELECT country, SUM(DISTINCT n) FROM {BY_AGE} AS t GROUP BY country",
    f"SELECT country, SUM(n), MAX(n) FROM {BY_AGE} AS t GROUP BY country",
    f"SELECT AVG(m) FROM (SELECT country, SUM(n) AS m FROM {BY_AGE} AS t GROUP BY country) AS u",
    f"SELECT country, COUNT(*) FROM {BY_AGE} AS t WHERE n > 2 GROUP BY country",
    f"SELECT RANK() OVER (ORDER BY n) FROM {BY_AGE} AS t",
    f"SELECT SUM(n) OVER (ORDER BY age) FROM {BY_AGE} AS t",
    f"SELECT SUM(s * s) OVER () FROM {BY_AGE} AS t",
    f"SELECT SUM(n) FROM (SELECT n, SUM(s) OVER () AS w FROM {BY_AGE} AS t ORDER BY n LIMIT 5) AS u",
    f"SELECT SUM(n) FROM {BY_AGE} AS t WHERE n > 2",
    f"SELECT SUM(n) FILTER (WHERE n > 2) FROM {BY_AGE} AS t",
    f"SELECT SUM(n) FILTER (WHERE n > 2) OVER () FROM {BY_AGE} AS t",
    f"SELECT n, SUM(n) FROM {BY_AGE} AS t GROUP BY n",
    f"SELECT SUM(n) OVER (PARTITION BY s) FROM {BY_AGE} AS t",
    f"SELECT SUM(m) FROM (SELECT country, n AS x, SUM(n) AS m FROM {BY_AGE} AS t GROUP BY country, n) AS u WHERE x > 2",
    f"SELECT DISTINCT n FROM {BY_AGE} AS t",
    f"SELECT t.n, p.population FROM {BY_AGE} AS t JOIN countries AS p ON t.country = p.country",
    f"SELECT p.country, t.n FROM countries AS p LEFT JOIN {BY_AGE} AS t ON t.country = p.country",
    f"SELECT country FROM countries WHERE country IN (SELECT country FROM {BY_AGE} AS t)",
    f"SELECT country FROM countries WHERE EXISTS (SELECT country FROM {BY_AGE} AS t)",
    f"SELECT country FROM countries EXCEPT SELECT country FROM {BY_AGE} AS t",
    f"SELECT SUM(t.n) FROM {BY_AGE} AS t JOIN {ORDERS} AS o ON t.n = o.n",
    f"SELECT COUNT(*) FROM customers AS c JOIN {BY_AGE} AS t ON t.country = c.country AND t.age = c.age",
    f"SELECT o.n, v.p FROM {ORDERS} AS o CROSS JOIN (SELECT population AS p FROM countries LIMIT 2) AS v",
    f"SELECT o.n, v.p FROM {ORDERS} AS o CROSS JOIN (SELECT population AS p FROM countries OFFSET 2) AS v",
    "SELECT AVG(n) FROM (SELECT country, COUNT(*) AS n FROM customers GROUP BY ROLLUP (country)) AS t",
    "SELECT DISTINCT channel FROM orders WHERE amount > 100",
    "SELECT DISTINCT channel FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)",
    "SELECT channel FROM orders JOIN customers USING (customer_id) GROUP BY channel",
    "SELECT COUNT(*) FROM countries JOIN (SELECT DISTINCT country FROM customers) AS t USING (country)",
    "SELECT COUNT(*) FROM countries WHERE country IN (SELECT DISTINCT country FROM customers WHERE age > 20)",
])  # fmt: skip
def test_a_number_of_units_is_asked_where_a_group_without_rows_would_change_something(
    sql: str,
) -> None:
    plan = _plan(sql)
    assert _counts_units(plan)
    assert any("take part" in note and "1 of 20" in note for note in plan.notes)


@pytest.mark.parametrize("sql", [
    "SELECT country, COUNT(*) FROM customers GROUP BY country",
    "SELECT country, COUNT(*) FROM customers GROUP BY country HAVING COUNT(*) > 5 ORDER BY 2 LIMIT 3",
    "SELECT country, COUNT(*) FROM customers GROUP BY country UNION ALL SELECT channel, COUNT(*) FROM orders GROUP BY channel",
    "SELECT country, COUNT(*) FROM customers GROUP BY ROLLUP (country)",
    f"SELECT country, SUM(n), SUM(s) FROM {BY_AGE} AS t GROUP BY country",
    f"SELECT SUM(m) FROM (SELECT country, SUM(n) AS m FROM {BY_AGE} AS t GROUP BY country) AS u",
    f"SELECT AVG(m) FROM (SELECT SUM(n) AS m FROM {BY_AGE} AS t) AS u",
    f"SELECT country, n * 1.0 / SUM(n) OVER (PARTITION BY country) FROM {BY_AGE} AS t",
    f"SELECT SUM(n) FROM (SELECT n, SUM(s) OVER () AS w FROM {BY_AGE} AS t ORDER BY n) AS u",
    f"SELECT SUM(n) FROM {BY_AGE} AS t WHERE age > 50 AND country <> 'at'",
    f"SELECT country, SUM(n) FILTER (WHERE age > 50) FROM {BY_AGE} AS t GROUP BY country",
    f"SELECT older, SUM(n) FROM (SELECT age > 50 AS older, n FROM {BY_AGE} AS t) AS u GROUP BY older",
    f"SELECT SUM(m) FROM (SELECT country, SUM(n) AS m FROM {BY_AGE} AS t GROUP BY country) AS u WHERE country < 'fr'",
    f"SELECT SUM(o.n) FROM {ORDERS} AS o CROSS JOIN (SELECT population AS p FROM countries LIMIT 1) AS v WHERE v.p > 5",
    f"SELECT o.channel, o.n * 1.0 / t.everyone FROM {ORDERS} AS o CROSS JOIN {TOTAL} AS t",
    f"SELECT SUM(o.n) FROM {ORDERS} AS o CROSS JOIN {TOTAL} AS t",
    f"SELECT o.n, v.x FROM {ORDERS} AS o CROSS JOIN (VALUES (1)) AS v (x)",
    f"SELECT o.n, v.p FROM {ORDERS} AS o CROSS JOIN (SELECT population AS p FROM countries ORDER BY 1 LIMIT 1) AS v",
    f"SELECT t.everyone, o.n FROM {TOTAL} AS t LEFT JOIN {ORDERS} AS o ON o.n > t.everyone",
    "SELECT DISTINCT channel FROM orders",
    "SELECT DISTINCT channel FROM orders WHERE channel <> 'web'",
    "SELECT channel FROM (SELECT channel FROM orders ORDER BY channel) AS t GROUP BY channel",
    "SELECT p.country, COUNT(c.age) FROM countries AS p LEFT JOIN customers AS c ON p.country = c.country GROUP BY p.country",
])  # fmt: skip
def test_no_number_of_units_is_asked_where_nothing_would_change(sql: str) -> None:
    plan = _plan(sql)
    assert not _counts_units(plan)
    assert not any("1 of 20" in note for note in plan.notes)


def test_notes_say_which_groups_an_answer_is_of() -> None:
    by_country = "SELECT country, COUNT(*) AS n FROM customers GROUP BY country"
    by_city = "SELECT city, COUNT(*) AS n FROM customers GROUP BY city"
    assert _plan(by_country).notes == (
        "country: all public groups are shown, those without rows too",
    )
    assert _plan(f"SELECT SUM(n) FROM ({by_country}) AS t").notes == (
        "country: all public groups take part, those without rows as 0",
    )
    assert _plan(by_city).notes == (), "the price says how few"
    for above in ("SUM(n)", "AVG(n)"):
        assert _plan(f"SELECT {above} FROM ({by_city}) AS t").notes == (
            "city: groups that are not shown are left out of what is computed from groups",
        )
    assert _plan("SELECT COUNT(*) FROM customers").notes == ()
    spine = "SELECT p.country, COUNT(c.age) FROM countries AS p LEFT JOIN customers AS c ON p.country = c.country GROUP BY p.country"
    assert _plan(spine).notes == (), "SQL has these groups as well"


@pytest.mark.parametrize(("sql", "name"), [
    ("SELECT date_trunc('month', placed) AS month, COUNT(*) FROM orders GROUP BY 1", "month"),
    ("SELECT COUNT(*), date_trunc('month', placed) AS month FROM orders GROUP BY date_trunc('month', placed)", "month"),
    ("SELECT month, COUNT(*) FROM (SELECT date_trunc('month', placed) AS month FROM orders) AS t GROUP BY 1", "month"),
    ("SELECT age > 50 AS older, country, COUNT(*) FROM customers GROUP BY ROLLUP (1, 2)", "older, country"),
    ("SELECT DISTINCT age > 50 AS older FROM customers WHERE city = 'x'", "older"),
    ("SELECT age > 50 AS older FROM customers GROUP BY 1", "older"),
    ("SELECT COUNT(*) FROM orders GROUP BY date_trunc('month', placed)", "date_trunc"),
])  # fmt: skip
def test_notes_name_keys_as_the_analyst_does(sql: str, name: str) -> None:
    assert f"{name}: " in " ".join(_plan(sql).notes)


def test_a_number_that_is_there_is_not_asked_twice() -> None:
    [one_each] = _plan(f"SELECT MIN(s), MAX(n) FROM {BY_AGE} AS t").measurements
    assert Rows() in one_each.statistics
    assert Units() not in one_each.statistics
    groups = "SELECT channel, COUNT(DISTINCT customer_id) AS n FROM orders GROUP BY channel"
    [asked] = _plan(f"SELECT MIN(n) FROM ({groups}) AS t").measurements
    assert asked.statistics == (Units(),)
    twice = f"WITH g AS {ORDERS} SELECT g.channel, g.n, h.n AS other, (SELECT MAX(n) FROM g) FROM g JOIN g AS h ON g.channel = h.channel"
    [once] = _plan(twice).measurements
    assert once.statistics == (Rows(), Units())
    shared = f"WITH g AS {ORDERS} SELECT channel, n, (SELECT MAX(n) FROM g) AS most FROM g"
    [both] = _plan(shared).measurements
    assert both.unit_count is not None


@pytest.fixture
def shop() -> Session:
    return service("shop", "shop", seed=5).session("analyst")


def test_a_setting_keeps_or_drops_them(shop: Session) -> None:
    sql = "SELECT country, COUNT(*) AS n FROM customers WHERE age > 99 GROUP BY country"
    above = f"SELECT COUNT(n) AS groups FROM (SELECT n + 0 AS n FROM ({sql}) AS t) AS u"
    assert shop.execute(sql).table.num_rows == 9
    dropped = shop.execute(above)
    assert "1 of 20" in dropped.notes[0]
    shop.execute("SET dpsql.empty_groups = 'keep'")
    kept = shop.execute(above)
    assert kept.table.column(0).to_pylist() == [9]
    assert kept.notes == ("country: all public groups take part, those without rows too",)
    shop.execute("SET dpsql.empty_groups = 'drop'")
    assert shop.execute(sql).table.num_rows < 9
    assert "1 of 20" in shop.execute(sql).notes[0]
    assert shop.execute("SHOW dpsql.empty_groups").table.column(0).to_pylist() == ["drop"]
    shop.execute("RESET dpsql.empty_groups")
    assert shop.execute(sql).table.num_rows == 9


def test_explain_says_from_how_many_units_on_and_what_that_costs(shop: Session) -> None:
    sql = f"SELECT MIN(n) FROM {ORDERS} AS t"
    plain, conditioned = shop.explain(f"SELECT SUM(n) FROM {ORDERS} AS t"), shop.explain(sql)
    assert "units take part" not in plain
    assert "4 public groups, of which those with at least" in conditioned
    assert "units: number of units" in conditioned
    [part] = shop.prepare(sql).parts
    assert part.share.statistics == 2, "the number of units is paid from the same budget"


def test_a_stored_answer_gives_the_numbers_that_it_gave(shop: Session) -> None:
    groups = "SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel"
    above = f"SELECT channel, RANK() OVER (ORDER BY n DESC) AS place FROM ({groups}) AS t"
    first = shop.execute(above)
    assert first.cost.epsilon > 0
    again = shop.execute(above)
    assert again.recalled
    assert again.table.equals(first.table)
    alone = shop.execute(groups)
    assert not alone.recalled, "half of the budget bought a number that errs more"
    with_units = shop.execute(above)
    assert with_units.recalled
    smaller = service("shop", "shop", seed=6).session("analyst")
    smaller.execute(groups)
    due = smaller.execute(above).cost.epsilon
    assert 0 < due < first.cost.epsilon, "the number of rows is stored; that of units is due"


def test_a_later_measurement_is_asked_with_the_same_groups() -> None:
    opened = service("shop", "shop", seed=7)
    sql = "SELECT COUNT(*) AS n FROM customers WHERE age > (SELECT AVG(age) FROM (SELECT age, COUNT(*) AS n FROM customers WHERE age > 95 GROUP BY age) AS t)"
    first = opened.session("analyst").execute(sql)
    again = opened.session("analyst").execute(sql)
    assert again.recalled
    assert again.table.equals(first.table)


def test_merged_numbers_have_a_threshold_of_their_own_noise(shop: Session) -> None:
    sql = f"SELECT MIN(n) FROM {ORDERS} AS t"
    for epsilon in ("0.02", "0.05", "0.1"):
        shop.execute(f"SET dpsql.epsilon = {epsilon}")
        reply = shop.execute(sql)
        assert reply.table.num_rows == 1
        assert reply.cost.epsilon > 0


def test_a_comment_keeps_them_for_one_statement(shop: Session) -> None:
    sql = f"SELECT MIN(n) FROM {ORDERS} AS t"
    assert "1 of 20" in shop.execute(sql).notes[0]
    assert "1 of 20" not in shop.execute(f"/* dpsql.empty_groups = 'keep' */ {sql}").notes[0]


def test_a_group_that_a_left_join_keeps_shows_no_noise_below_other_aggregates() -> None:
    """SQL has NULL there for all but counts, and averages pass over it."""
    spine = (
        "SELECT c.country, {} AS x FROM countries AS c LEFT JOIN customers AS u"
        " ON u.country = c.country GROUP BY c.country"
    )
    above = "SELECT AVG(x) FROM ({}) AS t"
    both = spine.replace("{} AS x", "COUNT(u.age) AS n, AVG(u.age) AS x")
    assert _plan(above.format(both)).measurements[0].unit_count is not None, (
        "counts stay as they are"
    )
    for call, asked in (("COUNT(u.age)", False), ("SUM(u.age)", True), ("AVG(u.age)", True)):
        plan = _plan(above.format(spine.format(call)))
        assert (plan.measurements[0].unit_count is not None) is asked, call
        assert any("more than counts" in note for note in plan.notes) is asked
        top = _plan(spine.format(call))
        assert top.measurements[0].unit_count is None, "at the top it is shown, and noted"
        assert any("not a count" in note for note in top.notes) is asked


@pytest.mark.parametrize(
    ("values", "said"), [("AVG(n), SUM(n)", True), ("AVG(n), COUNT(*)", True), ("AVG(n)", False)]
)
def test_sums_beside_what_needs_rows_are_said_to_be_of_the_same_groups(
    shop: Session, values: str, said: bool
) -> None:
    notes = " ".join(shop.prepare(f"SELECT {values} FROM {ORDERS} AS t").plan.notes)
    assert ("also in sums and counts of groups" in notes) is said
