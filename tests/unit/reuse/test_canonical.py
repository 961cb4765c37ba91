"""What is the same question, and what is not."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from support.shop import priced

from dpsql.ir.expressions import Column, Interval, Parameter, Shape
from dpsql.ir.relations import Distinct, Filter, Join, Limit, Public, Stored, Values
from dpsql.policy.types import Kind
from dpsql.price.priced import PricedPlan
from dpsql.reuse.canonical import NotCanonical, _Canon, _expression, question
from dpsql.reuse.pieces import pieces


def families(plan: PricedPlan, version: str = "v1") -> tuple[str, ...]:
    return tuple(piece.family for piece in pieces(plan, version))


def family(sql: str) -> tuple[str, ...]:
    return families(priced(sql))


SAME = [
    (
        "SELECT COUNT(*) FROM orders WHERE amount > 10 AND channel = 'web'",
        "select count( * ) as n from orders o where 'web' = o.channel and (amount > 10)",
        "SELECT COUNT(*) FROM (SELECT * FROM orders WHERE channel = 'web') AS x WHERE amount > 10",
        (
            "SELECT COUNT(*) FROM (SELECT * FROM orders ORDER BY placed) AS x"
            " WHERE amount > 10 AND channel = 'web'"
        ),
        (
            "SELECT COUNT(*) FROM (SELECT amount AS a, channel AS c FROM orders) AS x"
            " WHERE x.a > 10 AND x.c = 'web'"
        ),
        (
            "WITH web AS (SELECT amount FROM orders WHERE channel = 'web')"
            " SELECT COUNT(*) FROM web WHERE amount > 10"
        ),
    ),
    (
        (
            "SELECT c.country, SUM(o.amount) FROM customers c JOIN orders o"
            " ON c.customer_id = o.customer_id WHERE c.age > 30 AND o.amount < 100 GROUP BY 1"
        ),
        (
            "SELECT k.country AS land, SUM(d.amount) FROM orders AS d JOIN customers AS k"
            " ON d.customer_id = k.customer_id WHERE d.amount < 100 AND k.age > 30 GROUP BY k.country"
        ),
        (
            "SELECT c.country, SUM(o.amount) FROM customers c JOIN orders o USING (customer_id)"
            " WHERE o.amount < 100 AND c.age > 30 GROUP BY c.country ORDER BY 2 DESC"
        ),
    ),
    (
        "SELECT city, COUNT(*) FROM customers GROUP BY city",
        "SELECT town, n FROM (SELECT city AS town, COUNT(*) AS n FROM customers GROUP BY 1) AS q",
    ),
    (
        "SELECT COUNT(*) FROM orders WHERE amount > 10 OR channel = 'web' OR channel = 'shop'",
        "SELECT COUNT(*) FROM orders WHERE channel = 'shop' OR (channel = 'web' OR amount > 10)",
    ),
]

DIFFERENT = [
    "SELECT COUNT(*) FROM orders",
    "SELECT COUNT(*) FROM visits",
    "SELECT COUNT(amount) FROM orders",
    "SELECT SUM(amount) FROM orders",
    "SELECT COUNT(DISTINCT channel) FROM orders",
    "SELECT APPROX_COUNT_DISTINCT(amount) FROM orders",
    "SELECT COUNT(DISTINCT customer_id) FROM orders",
    "SELECT COUNT(*) FROM orders WHERE amount > 10",
    "SELECT COUNT(*) FROM orders WHERE amount >= 10",
    "SELECT COUNT(*) FROM orders WHERE amount < 10",
    "SELECT COUNT(*) FROM orders WHERE 10 < amount AND amount < 20",
    "SELECT COUNT(*) FROM orders WHERE channel = '10'",
    "SELECT COUNT(*) FILTER (WHERE amount > 10) FROM orders",
    "SELECT channel, COUNT(*) FROM orders GROUP BY channel",
    "SELECT channel, COUNT(*) FROM orders WHERE channel IN ('web', 'shop') GROUP BY channel",
    "SELECT channel = 'web', COUNT(*) FROM orders GROUP BY 1",
    "SELECT channel, COUNT(*), SUM(amount) FROM orders GROUP BY channel",
    "SELECT COUNT(*) FROM customers",
    "SELECT COUNT(*) FROM customers JOIN orders USING (customer_id)",
    "SELECT COUNT(*) FROM customers LEFT JOIN orders USING (customer_id)",
    "SELECT COUNT(*) FROM orders a JOIN orders b USING (customer_id) WHERE a.amount > 1",
    "SELECT COUNT(*) FROM orders a JOIN orders b USING (customer_id) WHERE a.amount > b.amount",
    "SELECT SUM(n) FROM (SELECT customer_id, LEAST(COUNT(*), 9) AS n FROM orders GROUP BY 1) AS q",
    (
        "SELECT SUM(n) FROM (SELECT customer_id, LEAST(COUNT(*), 9) AS n FROM orders"
        " WHERE amount > 1 GROUP BY 1) AS q"
    ),
    (
        "SELECT SUM(n) FROM (SELECT customer_id, LEAST(COUNT(*), 9) AS n FROM orders GROUP BY 1) AS q"
        " WHERE n > 1"
    ),
    (
        "SELECT SUM(r) FROM (SELECT GREATEST(0, LEAST(9, ROW_NUMBER() OVER (PARTITION BY customer_id"
        " ORDER BY placed))) AS r, amount FROM orders) AS q WHERE amount > 1"
    ),
    (
        "SELECT SUM(r) FROM (SELECT GREATEST(0, LEAST(9, ROW_NUMBER() OVER (PARTITION BY customer_id"
        " ORDER BY placed))) AS r FROM orders WHERE amount > 1) AS q"
    ),
    (
        "SELECT COUNT(*) FROM (SELECT customer_id FROM orders UNION ALL"
        " SELECT customer_id FROM visits) AS u"
    ),
    "SELECT COUNT(*) FROM (SELECT DISTINCT customer_id FROM orders) AS d",
    "SELECT COUNT(*) FROM (SELECT DISTINCT customer_id, channel FROM orders) AS d",
    "SELECT SUM(CASE WHEN channel = 'web' THEN amount ELSE 0 END) FROM orders",
    "SELECT SUM(CASE WHEN channel = 'web' THEN 0 ELSE amount END) FROM orders",
    "SELECT COUNT(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM visits)",
    (
        "SELECT COUNT(*) FROM customers WHERE country IN"
        " (SELECT country FROM countries WHERE continent = 'Europe')"
    ),
    (
        "SELECT COUNT(*) FROM customers WHERE country IN"
        " (SELECT country FROM countries WHERE continent = 'Asia')"
    ),
]


@pytest.mark.parametrize("statements", SAME)
def test_the_same_question_in_other_words(statements):
    assert len({family(sql) for sql in statements}) == 1


def test_different_questions():
    found = {sql: family(sql) for sql in [*DIFFERENT, *(same[0] for same in SAME)]}
    for one, two in itertools.combinations(found, 2):
        assert found[one] != found[two], (one, two)


def test_another_policy_or_data_version_is_another_question():
    plan = priced(DIFFERENT[0])
    assert families(plan, "v1") != families(plan, "v2")


def test_only_a_release_with_no_wider_noise_serves():
    [wanted] = pieces(priced(DIFFERENT[0]), "v1")
    better = tuple(width / 2 for width in wanted.noise)
    assert wanted.served_by(wanted.noise)
    assert wanted.served_by(better)
    assert not wanted.served_by((better[0], wanted.noise[1] * 1.01))
    assert not wanted.served_by(better[:1])


# Relations by hand: what no SQL of the shop leads to


TEXT = Shape(Kind.TEXT, nullable=False)
ONE, TWO, THREE = (Column(n, "c", TEXT) for n in (1, 2, 3))


def listed(column: Column, *rows: str) -> Values:
    return Values((column,), tuple((row,) for row in rows))


def text(relation) -> str:
    return _Canon().block(relation).text()


def test_rows_that_are_written_out():
    assert text(listed(ONE, "a", "b")) == text(listed(TWO, "a", "b"))
    assert text(listed(ONE, "a", "b")) != text(listed(ONE, "b", "a"))


def test_distinct_rows():
    one, two = listed(ONE, "a"), listed(TWO, "a")
    assert text(Distinct(one, (ONE,), Public())) == text(Distinct(two, (TWO,), Public()))
    assert text(Distinct(one, (ONE,), Public())) != text(one)


def test_a_cross_join_is_an_inner_join_without_condition():
    one, two = listed(ONE, "a"), listed(TWO, "b")
    crossed = Join("cross", one, two, None, (ONE, TWO), Public())
    assert text(crossed) == text(Join("inner", two, one, None, (TWO, ONE), Public()))
    assert text(Join("left", one, two, None, (ONE, TWO), Public())) != text(crossed)


def test_spans_of_time():
    days = [_expression(Interval(n, unit), {}) for n, unit in ((1, "day"), (2, "day"), (1, "hour"))]
    assert len(set(days)) == 3


def test_what_has_no_canonical_text():
    one = listed(ONE, "a")
    for relation in (
        Limit(one, 1, 0, (ONE,), Public()),
        Stored("m0", (ONE,)),
        Filter(one, TWO, (ONE,), Public()),
        Filter(one, Parameter("p", TEXT), (ONE,), Public()),
        Join("inner", one, one, None, (ONE,), Public()),
    ):
        with pytest.raises(NotCanonical):
            text(relation)


def test_a_measurement_whose_unit_cannot_be_named_is_known_by_its_statement():
    plan = priced(DIFFERENT[0])
    [part] = plan.parts
    private = replace(part.measurement.privacy, key=(frozenset({10**6}),))
    odd = replace(part, measurement=replace(part.measurement, privacy=private))
    with pytest.raises(NotCanonical):
        question(odd.measurement)
    found = families(replace(plan, parts=(odd,)))
    assert found != families(plan)
    below = odd.measurement.input
    fewer = Filter(below, TWO, below.fields, below.privacy)
    other = replace(odd, measurement=replace(odd.measurement, input=fewer))
    assert families(replace(plan, parts=(other,))) != found
