"""Plans of unusual queries: what is listed, what is not, what is settled first."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from support.corpus import SHOP
from support.datasets import in_memory
from support.measured import exact, forced, opened, plan_of, request, text_of

from dpsql.bound import NormClip, RowWeights
from dpsql.bound.grid import _log2_up
from dpsql.catalog.statistic import Total
from dpsql.engines.duckdb.statements import list_statements
from dpsql.ir.domain import interval, members
from dpsql.ir.expressions import Shape
from dpsql.plan.cells import _size
from dpsql.policy.types import Kind
from dpsql.price import price
from dpsql.price.price import price as priced
from dpsql.price.show import bounding_text, show

ROLLED = "SELECT {0}, COUNT(*) FROM customers GROUP BY {1}"


def groups(sql: str) -> list[int | None]:
    """The public groups of each measurement; None where they pass a threshold."""
    return [None if m.cells is None else m.cells.count for m in plan_of(sql, SHOP).measurements]


@pytest.mark.parametrize(("sql", "count"), [
    ("SELECT CASE WHEN amount > 100 THEN channel ELSE 'x' END AS k, COUNT(*) FROM orders GROUP BY 1", 5),
    ("SELECT CASE WHEN amount > 100 THEN city ELSE 'x' END AS k, COUNT(*) FROM orders JOIN customers USING (customer_id) GROUP BY 1", None),
    ("SELECT DATE_TRUNC('second', started) AS s, COUNT(*) FROM visits GROUP BY 1", None),
    ("SELECT (SELECT AVG(age) FROM customers) AS a, COUNT(*) FROM orders GROUP BY 1", None),
    ("SELECT 'x' AS k, 1 AS n, COUNT(*) FROM orders GROUP BY 1, 2", 1),
    ("SELECT channel, COUNT(*) FROM orders WHERE channel = 'nothing' GROUP BY channel", 0),
    ("SELECT seconds, COUNT(*) FROM visits WHERE seconds BETWEEN 0.5 AND 2.5 GROUP BY seconds", 2),
])  # fmt: skip
def test_groups_are_listed_where_they_are_few_and_public(sql: str, count: int | None) -> None:
    assert groups(sql)[-1] == count


def test_grouping_sets_add_up_the_finest_groups_only_where_that_is_right() -> None:
    assert groups(ROLLED.format("country, age", "ROLLUP (country, age)")) in (
        [9 * 83, 9, 1],
        [9 * 83, 1],
        [9 * 83, 9],
    )
    assert groups(ROLLED.format("country, age", "GROUPING SETS ((country), (age))")) == [9, 83], (
        "no finest level"
    )
    assert groups(ROLLED.format("city, country", "ROLLUP (city, country)")) == [None, None, 1]
    joined = "SELECT channel, country, COUNT(*) FROM orders JOIN customers USING (customer_id) "
    assert groups(joined + "GROUP BY ROLLUP (1, 2)") == [4 * 9, 1], (
        "nine times as many groups as channels, and three levels: their sums err as little"
    )
    units = "SELECT channel, COUNT(DISTINCT customer_id) FROM orders GROUP BY ROLLUP (channel)"
    assert groups(units) == [4, 1], "units of several groups do not add up"


def test_the_same_groups_are_listed_once() -> None:
    plan = plan_of(
        "SELECT country FROM customers GROUP BY GROUPING SETS ((country), (country))", SHOP
    )
    assert plan.measurements == ()
    assert len(plan.publics) == 1
    two = "SELECT DISTINCT channel AS k FROM orders UNION ALL SELECT DISTINCT page FROM visits"
    assert len(plan_of(two, SHOP).publics) == 2


def test_an_order_below_the_frontier_changes_nothing() -> None:
    here = opened(SHOP)
    session = here.session()
    session.execute("SELECT COUNT(*) FROM orders")
    assert session.execute(
        "SELECT COUNT(*) FROM (SELECT * FROM orders ORDER BY amount) AS t"
    ).recalled


def test_what_depends_on_an_earlier_release_is_recalled_as_a_whole() -> None:
    session = opened(SHOP).session()
    sql = "SELECT COUNT(*) FROM visits WHERE seconds > (SELECT AVG(seconds) FROM visits)"
    first = session.execute(sql)
    again = session.execute(sql)
    assert not first.recalled
    assert again.recalled
    assert again.table == first.table


def test_text_that_looks_like_a_parameter_is_recalled() -> None:
    session = opened(SHOP).session()
    sql = "SELECT COUNT(*) FROM customers WHERE city = '$x0_'"
    assert [session.execute(sql).recalled for _ in range(2)] == [False, True]


def test_a_norm_clip_is_explained() -> None:
    plan = plan_of("SELECT channel, COUNT(*) FROM orders GROUP BY channel", SHOP)
    clip = NormClip(groups=4, norm=Fraction(5, 2))
    (measurement,), wanted = plan.measurements, request(3, 1)
    part = forced(measurement, clip, next(price._shares(plan, wanted)))
    assert bounding_text(part) == "norm clip, norm of a unit's counts at most 2.5"


def test_what_a_search_bounds_is_said() -> None:
    plan = plan_of("SELECT channel, SUM(amount) FROM orders GROUP BY channel", SHOP)
    found = RowWeights(rows=Fraction(7, 4), groups=1, valued=True)
    (measurement,), wanted = plan.measurements, request(3, 1)
    part = forced(measurement, found, next(price._shares(plan, wanted)))
    said = "a unit weighs at most what 1.75 rows of the largest value do"
    assert said in bounding_text(part)


def test_a_histogram_is_clipped_by_the_norm_of_its_units_rows() -> None:
    """Each unit's rows in a group weigh, bins together, what its clipped count would."""
    counts = plan_of("SELECT channel, COUNT(amount) FROM orders GROUP BY channel", SHOP)
    medians = plan_of("SELECT channel, MEDIAN(amount) FROM orders GROUP BY channel", SHOP)
    clip = NormClip(groups=4, norm=Fraction(5, 2))
    wanted = replace(request(3, 1), mechanism="laplace")
    connection = in_memory("dirty")
    connection.execute("DELETE FROM orders WHERE amount IS NULL")
    share = next(price._shares(counts, wanted))
    counted = exact(connection, [forced(counts.measurements[0], clip, share)])[0]
    part = forced(medians.measurements[0], clip, next(price._shares(medians, wanted)))
    listed = connection.execute(text_of(part)).fetchall()
    scale = Fraction(1 << part.bounding.bin_bits, 1 << 20)
    for key, bins in listed:
        weight = sum(b["n"] for b in bins or [])
        assert abs(weight - counted[(key,)][0] * scale) <= len(bins or []) + 100 * scale


@pytest.mark.parametrize("sql", [
    "SELECT COUNT(DISTINCT age) FROM customers", "SELECT MEDIAN(age), MIN(age), MAX(age) FROM customers",
    "SELECT MODE(channel) FROM orders", "SELECT channel, QUANTILE(amount, 0.9), MAX(placed) FROM orders GROUP BY channel",
])  # fmt: skip
def test_every_statistic_is_explained(sql: str) -> None:
    text = show(priced(plan_of(sql, SHOP), request(3, 1)), list_statements)
    assert "moved by at most" in text
    assert "cost: epsilon 1" in text


@pytest.mark.parametrize(
    "value",
    [
        Fraction(1),
        Fraction(1, 3),
        Fraction(5, 7),
        Fraction(4),
        Fraction(2**90 + 1),
        Fraction(1, 2**70),
    ],
)
def test_logarithms_are_rounded_up_exactly(value: Fraction) -> None:
    n = _log2_up(value)
    assert Fraction(2) ** (n - 1) < value <= Fraction(2) ** n


def test_the_size_of_what_cannot_be_counted_is_beyond_every_limit() -> None:
    assert _size(Shape(Kind.TEXT, domain=interval("a", "b"))) == 2**62
    assert _size(Shape(Kind.TEXT, nullable=True, domain=members(["a", "b"]))) == 3


def test_totals_of_one_column_are_one_sum_of_the_engine() -> None:
    large = "amount * 10000000000"  # too large a sum to be computed from a centred one
    plan = plan_of(f"SELECT channel, SUM({large}), AVG({large}) FROM orders GROUP BY channel", SHOP)
    part = priced(plan, request(3, 1)).parts[0]
    text = text_of(part)
    assert len(re.findall(r"\bCASE\b.*?\bEND AS v\d", text, re.DOTALL)) == 1, "clamped once"
    assert text.count("sum(v0)") == 2, "and added up once for each total, which the engine shares"
    assert {s.centre for s in part.measurement.statistics if isinstance(s, Total)} == {
        0,
        250 * 10**10,
    }
