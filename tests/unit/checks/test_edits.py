"""What is suggested for statements that once had a wrong suggestion, and for what rules propose."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import pytest
from shop import catalog, outcome, refusal

from dpsql.checks import bounded_values, identifiers, known_aggregates, unit_windows
from dpsql.diagnostics.refusal import Refused
from dpsql.ir.relations import Aggregate, Windowed, walk_relations
from dpsql.sql.bind import Bound, bind
from dpsql.sql.parse import Source, parse

T = TypeVar("T")


def suggestion(text: str) -> tuple[str, str]:
    """The code of a refusal, and the SQL that it suggests, which is answered."""
    refused = refusal(text)
    assert refused is not None, text
    assert not isinstance(outcome(refused.instead), Refused), refused.instead
    return refused.code, refused.instead.split("\n--")[0]


@pytest.mark.parametrize(
    ("text", "code", "instead"),
    [
        (
            "SELECT channel, (amount + 1) AS x FROM orders", "DP101",
            "SELECT channel, AVG(amount + 1) FROM orders GROUP BY channel",
        ),
        (
            "SELECT COUNT(*) FROM orders o JOIN visits v ON TRUE", "DP301",
            "SELECT COUNT(*) FROM orders o JOIN visits v ON o.customer_id = v.customer_id",
        ),
        (
            ("SELECT o.amount FROM orders o JOIN customers c ON c.customer_id = o.customer_id "
            "WHERE c.age > 30 ORDER BY o.amount DESC LIMIT 10"), "DP101",
            ("SELECT AVG(o.amount) FROM orders o JOIN customers c ON c.customer_id = o.customer_id "
            "WHERE c.age > 30"),
        ),
        (
            ("SELECT customer_id, SUM(amount) AS s FROM orders WHERE channel = 'web' "
            "GROUP BY customer_id ORDER BY s DESC LIMIT 5"), "DP101",
            ("SELECT COUNT(*), AVG(s) FROM (SELECT customer_id, SUM(amount) AS s FROM orders "
            "WHERE channel = 'web' GROUP BY customer_id) AS rows_of_one"),
        ),
        (
            "SELECT MAX(city) AS unit_price FROM customers", "DP110",
            "SELECT city, COUNT(*) FROM customers GROUP BY city",
        ),
        (
            "SELECT SUM(DISTINCT amount), AVG(DISTINCT amount) FROM orders", "DP110",
            "SELECT SUM(amount), AVG(amount) FROM orders",
        ),
        (
            "SELECT AVG(channel) FROM orders", "DP201",
            "SELECT channel, COUNT(*) FROM orders GROUP BY channel",
        ),
        (
            "SELECT city, COUNT(*) FROM customers", "DP111",
            "SELECT city, COUNT(*) FROM customers GROUP BY city",
        ),
        (
            ("SELECT SUM((amount - a) / s) FROM orders "
            "CROSS JOIN (SELECT AVG(amount) AS a, STDDEV(amount) AS s FROM orders) t"), "DP203",
            ("SELECT SUM(LEAST(GREATEST((amount - a) / s, -200), 200)) FROM orders "
            "CROSS JOIN (SELECT AVG(amount) AS a, STDDEV(amount) AS s FROM orders) t"),
        ),
        (
            "SELECT MEDIAN(LENGTH(city)) FROM customers", "DP203",
            "SELECT MEDIAN(LEAST(GREATEST(LENGTH(city), 0), 200)) FROM customers",
        ),
        (
            "SELECT amount FROM orders HAVING amount > 5", "DP101",
            "SELECT amount FROM orders GROUP BY amount HAVING amount > 5",
        ),
        (
            "SELECT amount FROM orders ORDER BY COUNT(*)", "DP101",
            "SELECT amount FROM orders GROUP BY amount ORDER BY COUNT(*)",
        ),
        (
            "SELECT AVG(amount > 5) FROM orders", "DP201",
            "SELECT AVG(CASE WHEN amount > 5 THEN 1 ELSE 0 END) FROM orders",
        ),
        (
            "SELECT COUNT(*) FROM ordres WHERE ordres.amount > 3", "DP104",
            "SELECT COUNT(*) FROM orders WHERE orders.amount > 3",
        ),
        (
            "SELECT COUNT(*) FROM orders WHERE channel = U&'\\0077eb' AND amount > 1", "DP100",
            "SELECT COUNT(*) FROM orders WHERE amount > 1",
        ),
        (
            "SELECT email, country, COUNT(*) FROM customers GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 4",
            "DP305",
            "SELECT age, country, COUNT(*) FROM customers GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 4",
        ),
    ],
)  # fmt: skip
def test_the_nearest_statement_is_suggested(text: str, code: str, instead: str) -> None:
    assert suggestion(text) == (code, instead)


def test_what_an_alias_named_is_not_another_thing_now() -> None:
    text = "SELECT MAX(email) AS unit_price, COUNT(*) AS n FROM customers ORDER BY unit_price"
    _, instead = suggestion(text)
    assert "AS unit_price" not in instead
    assert "AS n" in instead
    assert "-- without ORDER BY unit_price" in str(refusal(text))


@pytest.mark.parametrize("side", ["LEFT", "FULL", "RIGHT"])
def test_a_join_is_called_what_it_is(side: str) -> None:
    tables = {
        "LEFT": "countries n LEFT JOIN customers c",
        "FULL": "customers c FULL JOIN countries n",
    }
    read = tables.get(side, "customers c RIGHT JOIN countries n")
    refused = refusal(f"SELECT COUNT(*) FROM {read} ON c.country = n.country")
    assert refused is not None
    assert refused.code == "DP303"
    assert f"a {side} join" in refused.headline


@pytest.mark.parametrize("word", ["EXISTS", "NOT EXISTS"])
def test_a_subquery_is_not_called_a_join(word: str) -> None:
    inner = "SELECT 1 FROM customers c WHERE c.country = n.country"
    refused = refusal(f"SELECT COUNT(*) FROM countries n WHERE {word} ({inner})")
    assert refused is not None
    assert refused.headline.startswith(f"{word} or ")


def test_tables_without_a_name_are_told_apart() -> None:
    read = "(SELECT customer_id, age FROM customers), (SELECT country FROM countries)"
    refused = refusal(f"SELECT COUNT(*) FROM {read}")
    assert refused is None or refused.code != "DP106"


# --- edits that have no place ---------------------------------------------------------------


def bound(text: str) -> Bound:
    return bind(parse(Source(text)), catalog())


def first(query: Bound, kind: type[T]) -> T:
    return next(r for r in walk_relations(query.relation) if isinstance(r, kind))


def without_places(text: str) -> Bound:
    """The query with aggregates whose arguments nobody wrote."""
    query = bound(text)
    aggregate = first(query, Aggregate)
    calls = tuple(
        replace(call, args=tuple(replace(arg, span=None) for arg in call.args))
        for call in aggregate.calls
    )
    return replace(query, relation=replace(aggregate, calls=calls))


def test_a_value_without_a_place_gets_no_clamp() -> None:
    (refusal,) = bounded_values.check(
        without_places("SELECT SUM(amount * customer_id) FROM orders")
    )
    assert refusal.edits == ()


def test_values_without_a_place_are_not_counted_one_by_one() -> None:
    (refusal,) = bounded_values.check(without_places("SELECT MODE(city) FROM customers"))
    assert [edit.how for edit in refusal.edits] == ["replace"]
    (refusal,) = known_aggregates.check(without_places("SELECT MAX(city) FROM customers"))
    assert [edit.how for edit in refusal.edits] == ["replace"]


def test_a_sum_without_a_place_keeps_its_distinct() -> None:
    (refusal,) = known_aggregates.check(without_places("SELECT SUM(DISTINCT age) FROM customers"))
    assert refusal.edits == ()


def test_a_key_of_no_table_is_left_out() -> None:
    query = bound("SELECT email, COUNT(*) FROM customers GROUP BY email")
    grouped = first(query, Aggregate)
    (key,) = grouped.keys
    (edit,) = identifiers._shared(query, grouped, replace(key, number=-1))
    assert edit.how == "leave_out"


def test_a_window_whose_key_cannot_be_named_is_left_alone() -> None:
    windowed = first(
        bound("SELECT AVG(n) FROM (SELECT COUNT(*) OVER () AS n FROM orders) AS t"), Windowed
    )
    hidden = replace(windowed, input=replace(windowed.input, fields=()))
    assert unit_windows._partitioned(hidden, None) == ()
