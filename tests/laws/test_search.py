"""Bounds that are searched for: what they cost, what they betray, and that they are enforced."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from support.corpus import CORPUS, SHOP, WORLDS, World
from support.datasets import in_memory
from support.measured import Exact, broken, exact, plan_of, removed, request, text_of, way
from support.neighbours import trade_units
from support.services import FreeLedger, Seeded, real_service, service
from test_bounding_faults import UNITS_OF_DATA, _deleted

from dpsql.bound import Bounding, RowWeights, VectorClip, WeightsAndGroups
from dpsql.catalog.statistic import Total
from dpsql.cli import explain
from dpsql.diagnostics.refusal import Refused
from dpsql.ledger.store import Note
from dpsql.pipeline import Payer, answer
from dpsql.price import search
from dpsql.price.ladder import ladder as search_ladder
from dpsql.price.priced import Chosen, Noised, PricedMeasurement, PricedPlan, Search
from dpsql.price.size import Size
from dpsql.release.choose import choose_values
from dpsql.reuse.pieces import Slot, pieces
from dpsql.service import Service, Session

BY_CHANNEL = "SELECT channel, COUNT(*) AS n, AVG(amount) AS a FROM orders GROUP BY channel"
AVERAGES = "SELECT channel, AVG(amount) AS a FROM orders GROUP BY channel"
QUESTIONS = (
    BY_CHANNEL,
    "SELECT COUNT(*) FROM orders WHERE amount > 100",
    "SELECT city, COUNT(*) FROM customers JOIN orders USING (customer_id) GROUP BY city",
    "SELECT page, COUNT(seconds), COUNT(DISTINCT customer_id) FROM visits GROUP BY page",
    "SELECT channel, MEDIAN(amount) FROM orders GROUP BY channel",
)


def searching(sql: str, world: World = SHOP) -> PricedPlan:
    return search.price_with_searches(plan_of(sql, world), replace(request(3, 1), search="on"))


def settled(plan: PricedPlan, level: int) -> PricedPlan:
    """The plan after all of its searches found the rung at this position, or the middle of a range."""
    return list(rounds(plan, level))[-1]


def rounds(plan: PricedPlan, level: int) -> Iterator[PricedPlan]:
    """The plan, and what follows while it has searches."""
    yield plan
    while plan.searches:
        plan = search.with_found(plan, tuple(_found(one, level) for one in plan.searches))
        yield plan


def _found(one: Search, level: int) -> float:
    if one.size is None:
        low, high = one.rungs
        return float(low + (high - low) * Fraction(level, 100) / 2)
    return min(level, len(one.rungs) - 1)


def all_searches(plan: PricedPlan, level: int = 60) -> list[Search]:
    return [one for each in rounds(plan, level) for one in each.searches]


def _weights(part: PricedMeasurement) -> RowWeights | WeightsAndGroups:
    """The strategy of a measurement whose rows are weighed."""
    assert isinstance(part.bounding, RowWeights | WeightsAndGroups)
    return part.bounding


@pytest.mark.parametrize("beside", [
    "SUM(amount) FILTER (WHERE amount > 250)", "COUNT(DISTINCT customer_id)",
])  # fmt: skip
def test_sums_that_weigh_rows_together_are_measured_and_kept_together(beside: str) -> None:
    """The search finds the same bound for one sum and for two, and the first is stored."""
    here = service("oracle", "shop")
    assert isinstance(here.ledger, FreeLedger)
    session = here.session()
    session.execute("SET dpsql.search = on")
    rows = "FROM customers JOIN orders USING (customer_id) GROUP BY city || channel"
    one = f"SELECT SUM(amount) AS s {rows}"
    both = f"SELECT SUM(amount) AS s, {beside} AS t {rows}"
    session.execute(one)
    assert session.execute(one).recalled
    spent = sum(cost.epsilon for cost in here.ledger.charges)
    reply = session.execute(both)
    (first,), (part,) = (session.prepare(sql).parts for sql in (one, both))
    assert _weights(first).valued
    assert _weights(part).rows == _weights(first).rows
    assert sum(c.epsilon for c in here.ledger.charges) - spent >= 9 * 10**8, "none is recalled"
    assert not reply.recalled
    assert session.execute(both).recalled
    assert pieces(session.prepare(both), "")[0].slots == (Slot(0, (0, 1)),)


@pytest.mark.parametrize("sql", [
    "SELECT quantity, COUNT(*) FROM lineitem AS l JOIN orders AS o USING (order_id) GROUP BY 1",
    (
        "SELECT q, COUNT(*) FROM (SELECT l.quantity AS q FROM lineitem AS l JOIN orders AS o USING"
        " (order_id) UNION ALL SELECT quantity FROM lineitem WHERE returned) AS u GROUP BY q"
    ),
])  # fmt: skip
def test_units_are_told_by_columns_that_a_row_of_joined_tables_has(sql: str) -> None:
    """Lines that are joined with their orders are not led to their customer a second time."""
    connection = in_memory("trade")
    parts = _parts(searching(sql, WORLDS["trade"]))
    assert parts
    for units in (trade_units(("north", 7)), trade_units(("east", 3))):
        before, after = exact(connection, parts), removed(connection, units, parts)
        for part, one, other in zip(parts, before, after, strict=True):
            assert list(broken(part, one, other)) == []


def _breaches(parts: list[PricedMeasurement]) -> list[str]:
    connection = in_memory("dirty")
    before = exact(connection, parts)
    return [
        said
        for unit in UNITS_OF_DATA
        for part, one, other in zip(
            parts, before, removed(connection, _deleted((unit,)), parts), strict=True
        )
        for said in broken(part, one, other)
    ]


def _parts(plan: PricedPlan) -> list[PricedMeasurement]:
    return [part for one in all_searches(plan) for part in one.priced.parts]


def _choices(part: PricedMeasurement) -> int:
    """Among how many bounds is chosen: one that is no rung would end in an error, after it was paid for."""
    [item] = part.noised
    assert isinstance(item, Chosen)
    return item.buckets.count


SUMS = (
    "SELECT channel, SUM(amount) FROM orders GROUP BY channel",
    "SELECT channel, SUM(amount) FILTER (WHERE amount > 450), SUM(amount - 200) FROM orders GROUP BY channel",
    "SELECT SUM(seconds - 3000) FROM visits",
    "SELECT page, SUM(seconds), COUNT(DISTINCT customer_id) FROM visits GROUP BY page",
    "SELECT city, SUM(amount) FROM customers JOIN orders USING (customer_id) GROUP BY city",
)
"""Where nothing is asked of rows but sums, their values are searched for a bound."""


@pytest.mark.parametrize("sql", SUMS)
def test_a_bound_on_values_is_searched_for_and_enforced(sql: str) -> None:
    plan = searching(sql)
    [one] = [s for s in plan.searches if s.size is not None and s.size.amount == "worth"]
    assert _breaches(_parts(plan)) == []
    assert [_choices(part) for part in one.priced.parts] == [len(one.rungs)]
    for level in (0, 60, 80, 90, 100, len(one.rungs) - 2):
        found = settled(plan, level)
        [part] = found.parts
        assert _worth(part.bounding) == one.rungs[level]
        assert found.cost.epsilon <= Fraction(9, 10)
        assert _breaches([part]) == []
    [part] = settled(plan, len(one.rungs) - 1).parts
    assert _worth(part.bounding) in (50, 200, None), "the policy's own bound is no other one"


def _worth(bounding: Bounding) -> Fraction | None:
    """The limit on what the values of a unit add up to."""
    match bounding:
        case VectorClip(norm=1, worth=worth):
            return worth
        case RowWeights(valued=True, rows=rows) | WeightsAndGroups(valued=True, rows=rows):
            return Fraction(rows)
        case _:
            return None


HIDDEN = "FROM customers JOIN orders USING (customer_id) GROUP BY city"
VALUE_FAULTS: dict[str, tuple[str, Callable[[str], str]]] = {
    "values that cancel": (
        f"SELECT city, SUM(amount - 250) {HIDDEN}", lambda sql: sql.replace("sum(abs(", "sum(("),
    ),
    "the first sum alone": (
        f"SELECT city, SUM(amount) FILTER (WHERE amount > 450), SUM(amount - 200) {HIDDEN}",
        lambda sql: re.sub(r" OR \(coalesce.*?(?=\) AS w)", "", sql),
    ),
    "weights twice as large": (
        SUMS[4], lambda sql: re.sub(r"least\((\d+), ", r"least(\1, 2 * ", sql),
    ),
    "no unit is above": (
        SUMS[4], lambda sql: re.sub(r"HAVING .*?(?=\) AS w)", "HAVING 1 = 0", sql),
    ),
    "the norm of one group": (
        SUMS[0], lambda sql: sql.replace("OVER (PARTITION BY u0)", "OVER (PARTITION BY u0, k0)"),
    ),
    "the norm of numbers instead of sums": (
        SUMS[1], lambda sql: re.sub(r"sum\(CAST\(abs\(s0\) AS HUGEINT\)\) OVER", "count(*) OVER", sql),
    ),
    "signs are lost": (
        SUMS[1],
        lambda sql: sql.replace(
            "sum(CAST(abs(s1) AS HUGEINT)) OVER (PARTITION BY u0)", "abs(sum(s1) OVER (PARTITION BY u0))"
        ),
    ),
    "products are rounded away from zero": (
        SUMS[0], lambda sql: re.sub(r"// 1048576 AS s0", "// 1048576 + 1 AS s0", sql),
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", VALUE_FAULTS)
def test_a_bound_on_values_that_is_not_enforced_is_noticed(fault: str) -> None:
    sql, change = VALUE_FAULTS[fault]
    plan = searching(sql)
    found = []
    for level in (20, 60, 80):
        [part] = settled(plan, level).parts
        wrong = change(text_of(part))
        assert wrong != text_of(part)
        found += _breaches([replace(way(part), sql=wrong)])
    assert found


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_unit_moves_the_search_by_no_more_than_it_is_priced_for(sql: str) -> None:
    plan = searching(sql)
    assert plan.searches
    for level in (0, 60, 200):
        parts = [part for one in all_searches(plan, level) for part in one.priced.parts]
        assert _breaches(parts) == []


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("level", [0, 2, 4])
def test_what_is_found_is_enforced(sql: str, level: int) -> None:
    plan = searching(sql)
    found = settled(plan, level)
    assert not found.searches
    assert found.cost.epsilon <= Fraction(9, 10)
    assert found.parts[0].bounding != plan.parts[0].bounding
    assert _breaches(list(found.parts)) == []


ROW = "DELETE FROM visits WHERE rowid = (SELECT max(rowid) FROM visits WHERE {})"
ONE_ROW = (
    (SHOP, "SELECT country, SUM(age), COUNT(DISTINCT customer_id) FROM customers GROUP BY country"),
    (SHOP, "SELECT city, SUM(age - 50) FROM customers GROUP BY city"),
    (WORLDS["rows"], "SELECT page, SUM(seconds), SUM(3 * seconds - 900) FROM visits GROUP BY page"),
)
"""Where a unit has one row, in a table with its key or without any."""


def _one_row_breaches(parts: list[PricedMeasurement]) -> list[str]:
    connection = in_memory("dirty")
    rows = [(ROW.format(f"seconds {w}"),) for w in ("= 3600", "< 0", "> 9999", "< 60", "IS NULL")]
    before = exact(connection, parts)
    return [
        said
        for deletion in [*rows, *(_deleted((unit,)) for unit in UNITS_OF_DATA)]
        if deletion in rows or "visits" not in text_of(parts[0])
        for part, one, other in zip(
            parts, before, removed(connection, deletion, parts), strict=True
        )
        for said in broken(part, one, other)
    ]


@pytest.mark.parametrize(("world", "sql"), ONE_ROW)
def test_a_narrower_range_is_searched_for_where_a_unit_has_one_row(world: World, sql: str) -> None:
    plan = searching(sql, world)
    [one] = plan.searches
    assert one.rungs[-1] == 1
    assert one.size == Size("worth", 1, by_row=True)
    assert _one_row_breaches(_parts(plan)) == []
    for level in (0, 20, 60, 70, len(one.rungs) - 2):
        [part] = settled(plan, level).parts
        [wide] = plan.parts
        for narrow, was in zip(part.noised, wide.noised, strict=True):
            if isinstance(narrow.statistic, Total):
                assert isinstance(was, Noised)
                share = narrow.sensitivity.l1 * narrow.grain / (was.sensitivity.l1 * was.grain)
                assert float(share) == pytest.approx(float(one.rungs[level]), rel=0.02, abs=0.02)
        assert _one_row_breaches([part]) == []
    assert settled(plan, len(one.rungs) - 1).parts[0].noised == plan.parts[0].noised


def test_a_range_that_is_not_narrowed_is_noticed() -> None:
    plan = searching(ONE_ROW[2][1], WORLDS["rows"])
    [wide] = plan.parts
    [part] = settled(plan, 60).parts
    assert _one_row_breaches([replace(way(part), sql=text_of(wide))])
    [level] = _parts(plan)
    wrong = text_of(level).replace("count(*) AS n", "4 * count(*) AS n")
    assert wrong != text_of(level)
    assert _one_row_breaches([replace(way(level), sql=wrong)])


STRICT = replace(SHOP, change=lambda text: f"{SHOP.change(text)}\nstrict_timing: on\n")
CONDITIONED = (
    "SELECT channel, AVG(amount), COUNT(*) FROM orders WHERE placed > DATE '2024-06-01' GROUP BY channel",
    "SELECT AVG(age) FROM customers WHERE age > 40",
    "SELECT channel, SUM(amount - 200) FROM orders WHERE placed > DATE '2024-06-01' GROUP BY channel",
    "SELECT page, SUM(seconds), COUNT(DISTINCT customer_id) FROM visits WHERE seconds > 60 GROUP BY page",
    QUESTIONS[1],
)


@pytest.mark.parametrize("sql", [*SUMS, *CONDITIONED])
def test_strict_timing_searches_for_the_same(sql: str) -> None:
    connection = in_memory("dirty")
    usual, strict = searching(sql), searching(sql, STRICT)
    level = 80 if "SUM" in sql else 2
    for plans in (
        (usual, strict),
        tuple(settled(p, level) for p in (usual, strict)),
    ):
        parts = [_parts(plan) or list(plan.parts) for plan in plans]
        assert sql not in CONDITIONED or text_of(parts[0][0]) != text_of(parts[1][0])
        one, other = (exact(connection, part) for part in parts)
        assert _in_order(one) == _in_order(other)
        assert _breaches(parts[1]) == []


def _in_order(found: list[Exact]) -> list[list[str]]:
    """Each measurement's groups; an engine may give them in any order."""
    return [sorted(map(repr, each.items())) for each in found]


def test_strict_timing_answers_after_a_search() -> None:
    """The guard lets it through: no condition of the search decides which rows are read."""
    with real_service("shop", "shop", lambda text: rich(text) + "\nstrict_timing: on\n") as opened:
        session = opened.session("analyst")
        session.execute("SET dpsql.search = on")
        for sql in CONDITIONED:
            session.execute(sql)


FAULTS: dict[str, Callable[[str], str]] = {
    "rows instead of units": lambda sql: sql.replace(
        "count(*) AS n FROM (SELECT", "sum(rows) AS n FROM (SELECT rows,"
    ).replace("END AS x0 FROM", 'END AS x0, q2."n_3" AS rows FROM'),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_search_that_counts_more_than_units_is_noticed(fault: str) -> None:
    [part] = _parts(searching("SELECT COUNT(*) FROM orders WHERE amount > 100"))
    number = re.search(r'"n_(\d+)"', text_of(part))
    assert number is not None
    wrong = FAULTS[fault](text_of(part).replace(f'"n_{number[1]}"', '"n_3"'))
    assert wrong != text_of(part)
    assert _breaches([replace(way(part), sql=wrong)])


def test_a_found_bound_that_is_not_enforced_is_noticed() -> None:
    counts = "SELECT channel, COUNT(*) FROM orders GROUP BY channel"
    [part] = settled(searching(counts), 1).parts
    wrong = text_of(part).replace("HAVING count(*) > 2", "HAVING count(*) > 2000")
    assert wrong != text_of(part)
    assert _breaches([replace(way(part), sql=wrong)])


def test_rows_that_are_the_same_are_searched_once() -> None:
    sql = "SELECT channel, COUNT(*) FROM orders GROUP BY GROUPING SETS ((channel), ())"
    assert [len(s.measurements) for s in searching(sql).searches] in ([1], [2])
    two = (
        "SELECT a.n, b.n FROM (SELECT COUNT(*) AS n FROM orders) AS a,"
        " (SELECT MEDIAN(amount) AS n FROM orders) AS b"
    )
    assert [s.measurements for s in searching(two).searches] == [("m0", "m1")]
    other = two.replace("MEDIAN(amount) AS n FROM orders", "COUNT(*) AS n FROM visits")
    plan = searching(other)
    assert [s.measurements for s in plan.searches] == [("m0",), ("m1",)]
    assert plan.price.epsilon == 1


NOTHING_TO_FIND = (
    "SELECT COUNT(*) FROM customers",
    "SELECT COUNT(DISTINCT customer_id) FROM orders",
    "SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5) COUNT(*) FROM orders",
)


@pytest.mark.parametrize("sql", NOTHING_TO_FIND)
def test_where_there_is_nothing_to_find_nothing_is_searched_for(sql: str) -> None:
    plan = searching(sql)
    assert plan.searches == ()
    assert plan.most == plan.price == plan.cost


def test_only_what_gains_is_searched_for() -> None:
    sql = (
        "SELECT a.m, b.n, c.s FROM (SELECT AVG(amount) AS m FROM orders) AS a,"
        " (SELECT COUNT(*) AS n FROM customers) AS b, (SELECT SUM(seconds) AS s FROM visits) AS c"
    )
    plan = searching(sql)
    assert [(s.measurements, s.size) for s in plan.searches] == [(("m0",), None)]
    named = {name for one in all_searches(plan) for name in one.measurements}
    assert named == {"m0", "m2"}
    assert _breaches(_parts(plan)) == []


def test_the_price_is_fixed_before_the_search() -> None:
    for entry in CORPUS[::9]:
        wanted = replace(request(3, 1), search="on")
        plan = search.price_with_searches(plan_of(entry.sql, entry.world), wanted)
        for level in (0, 100_000) if plan.searches else ():
            costs = (one.priced.cost for one in all_searches(plan, level))
            total = sum(costs, settled(plan, level).cost)
            assert total.epsilon == plan.price.epsilon == plan.most.epsilon == 1
            assert total.delta <= plan.most.delta <= wanted.delta


# Sessions


def rich(text: str) -> str:
    for old, new in (
        ("max_rows_per_unit: 50", "max_rows_per_unit: 5000"),
        ("{epsilon: 20,", "{epsilon: 1e6,"),
        ("epsilon: 5\n    delta: 1e-6\n    per: month", "epsilon: 1e6\n    delta: 1e-6"),
        ("session: {epsilon: 1}", "session: {epsilon: 1e6}"),
        ("query: {epsilon: 0.1}", "query: {epsilon: 1000, delta: 1e-8}"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.fixture
def opened() -> Iterator[Service]:
    with real_service("shop", "shop", rich) as made:
        yield made


@pytest.fixture
def session(opened: Service) -> Session:
    made = opened.session("analyst")
    made.execute("SET dpsql.search = on")
    made.execute("SET dpsql.epsilon = 10")
    return made


def test_a_search_is_paid_once_and_its_answer_is_asked_again_for_free(session: Session) -> None:
    said = session.explain(BY_CHANNEL)
    assert "search: a centre of the values of s1" in said
    assert "cost: epsilon 10," in said
    first = session.execute(BY_CHANNEL)
    assert (first.cost.epsilon, first.recalled) == (10, False)
    again = session.execute(BY_CHANNEL)
    assert (again.cost.epsilon, again.recalled) == (0, True)
    assert again.table == first.table
    said = session.explain(BY_CHANNEL)
    assert "search:" not in said
    assert "to pay: nothing" in said
    other = session.execute("SELECT AVG(amount) FROM orders")
    assert other.cost.epsilon == 10, "one number has another share for searches than four"
    session.execute("SET dpsql.fresh = on")
    assert session.execute(BY_CHANNEL).cost.epsilon == 8, "all but the searches"
    elsewhere = session.execute("SELECT COUNT(*) FROM orders WHERE amount > 100")
    assert elsewhere.cost.epsilon == 10
    said = session.explain("SELECT SUM(amount) FROM orders")
    assert "search: what the values of a customer add up to" in said
    worth = session.execute("SELECT SUM(amount) FROM orders")
    assert worth.cost.epsilon == 10
    one_row = "SELECT country, SUM(age) FROM customers GROUP BY country"
    assert [session.execute(one_row).cost.epsilon for _ in range(2)] == [10, 8]
    by_group = session.execute("SELECT channel, SUM(amount) FROM orders GROUP BY channel")
    assert by_group.cost.epsilon == 10, "what values of a unit add up to depends on the groups"


def test_answers_with_and_without_a_search_are_different_questions(session: Session) -> None:
    session.execute("SET dpsql.search = off")
    plain = session.execute(BY_CHANNEL)
    assert plain.cost.epsilon == 10
    session.execute("SET dpsql.search = on")
    assert not session.execute(BY_CHANNEL).recalled
    session.execute("SET dpsql.search = off")
    assert session.execute(BY_CHANNEL).table == plain.table


def test_what_is_found_makes_less_noise(session: Session) -> None:
    session.execute("SET dpsql.mechanism = 'laplace'")
    session.execute("SET dpsql.epsilon = 1000")
    before = session.prepare("SELECT channel, COUNT(*) FROM orders GROUP BY channel")
    session.execute("SELECT channel, COUNT(*) FROM orders GROUP BY channel")
    after = session.prepare("SELECT channel, COUNT(*) FROM orders GROUP BY channel")
    assert after is session.prepare("SELECT channel, COUNT(*) FROM orders GROUP BY channel")
    assert _weights(before.parts[0]).rows == 5000
    assert _weights(after.parts[0]).rows <= 64
    wide, narrow = (p.parts[0].noised[0].standard_deviation for p in (before, after))
    assert narrow == pytest.approx(wide * _weights(after.parts[0]).rows / 5000, rel=0.01)


def test_most_of_what_is_asked_is_checked_before_the_search(session: Session) -> None:
    session.execute("SET dpsql.epsilon = 1000.5")
    spent = session.budget()
    with pytest.raises(Refused) as caught:
        session.execute(BY_CHANNEL)
    assert caught.value.code == "DP403"
    assert session.budget() == spent


def test_nothing_is_searched_for_where_the_answer_cannot_be_paid(opened: Service) -> None:
    poor = opened.session("pure")
    poor.execute("SET dpsql.search = on")
    poor.execute(BY_CHANNEL)
    for age in (20, 30):
        poor.execute(f"SELECT COUNT(*) FROM customers WHERE age > {age}")
    poor.execute("/* dpsql.epsilon = 0.3 */ SELECT COUNT(*) FROM customers WHERE age > 40")
    left = poor.budget()[-1].left_epsilon
    assert Fraction(19, 100) < left <= Fraction(1, 5), "enough for a search, and no more"
    spent = poor.budget()
    with pytest.raises(Refused) as caught:
        poor.execute("SELECT COUNT(*), AVG(seconds) FROM visits")
    assert caught.value.code == "DP402"
    assert poor.budget() == spent
    assert poor.execute(BY_CHANNEL).recalled


def test_an_error_cannot_be_asked_for_at_the_same_time(session: Session) -> None:
    session.execute("SET dpsql.max_error = 5000000")
    with pytest.raises(Refused) as caught:
        session.execute(BY_CHANNEL)
    assert caught.value.code == "DP401"
    session.execute(caught.value.instead)
    session.execute(BY_CHANNEL)


def test_a_comment_asks_for_a_search_and_the_command_line_tells_what_it_is(
    session: Session, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session.execute("SET dpsql.search = off")
    monkeypatch.setattr(explain, "open_session", lambda _: nullcontext(session))
    hinted = f"/* dpsql.search = on */ {BY_CHANNEL}"
    assert explain.run(Namespace(batch=None, sql=hinted)) == 0
    said = capsys.readouterr().out
    assert "What is found out first" in said
    assert "a centre of the values" in said
    assert explain.run(Namespace(batch=None, sql=BY_CHANNEL)) == 0
    assert "What is found out first" not in capsys.readouterr().out


def test_a_dashboard_pays_for_the_search_once(session: Session) -> None:
    first, second = session.price(["SET dpsql.epsilon = 10", BY_CHANNEL, AVERAGES])
    assert (first.alone.epsilon, first.due.epsilon) == (10, 10)
    assert second.alone.epsilon == 10
    assert 0 < second.due.epsilon < 9, "what is found is known, and a part of what is asked"


def test_the_choice_errs_as_predicted(session: Session) -> None:
    """The bound leaves about as many units above it as the plan says, seldom more."""
    session.execute("SET dpsql.fresh = on")
    [one] = session._service.plans.plan(  # the plan before anything was found
        ("analyst", session.settings, "x", ()), session._service.clock(),
        lambda now: session._planned(
            "SELECT COUNT(*) FROM orders", (), now, session.settings, suggest=False
        ),
    ).searches  # fmt: skip
    [item] = one.priced.parts[0].noised
    plain = session._service.tools.engine._engine._root.cursor()  # type: ignore[attr-defined]
    sizes = np.array(
        [n for (n,) in plain.sql("SELECT count(*) FROM orders GROUP BY customer_id").fetchall()]
    )
    beyond = []
    for _ in range(60):
        payer = Payer(session._accounts(()), _note(session), "test", fresh=True)
        given = answer(one.priced, payer, session._service.tools, intervals=False)
        level = int(given.release.table.column(0)[0].as_py())
        lower = one.rungs[level - 1] if level else 0
        beyond.append(int((sizes > lower).sum()))
        assert (sizes > one.rungs[level]).sum() <= item.depth * float(item.step) + item.half_width
    assert np.mean(np.array(beyond) > 0) >= 0.7, "mostly a lower rung has units beyond it"


def _too_high(monkeypatch: pytest.MonkeyPatch) -> float:
    """How often no unit reaches the bound, where 100,000 units have up to 100 of 10,000 rows."""
    monkeypatch.setattr(search, "ladder", lambda _: search_ladder(10_000))
    [one] = searching("SELECT COUNT(*) FROM orders").searches
    [item] = one.priced.parts[0].noised
    assert isinstance(item, Chosen)
    reached = one.rungs.index(128)
    weights = [{"b": 0, "n": 99_000}, {"b": reached, "n": 1_000}]
    drawn = choose_values(pa.chunked_array([[weights] * 20_000]), item, Seeded(9))
    levels = np.asarray(drawn)
    assert (levels >= reached).mean() > 0.999
    return float((levels > reached).mean())


def test_a_bound_that_no_unit_reaches_is_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _too_high(monkeypatch) < 0.1
    monkeypatch.setattr(search, "prior", lambda rungs: (1,) * len(rungs))
    assert _too_high(monkeypatch) > 0.2, "the law sees what the prior is for"


def _note(session: Session) -> Note:
    return Note("test", session.role)
