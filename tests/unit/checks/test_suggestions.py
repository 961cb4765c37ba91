"""What the checks suggest where the text gives no place to write it."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from shop import catalog

from dpsql.checks import (
    aggregate_only,
    bounded_values,
    identifiers,
    private_sets,
    unit_joins,
    unit_windows,
)
from dpsql.checks.rule import rewritten
from dpsql.diagnostics.span import Span
from dpsql.sql.bind import Bound, bind
from dpsql.sql.parse import Source, parse
from dpsql.sql.relations import Aggregate, Distinct, Join, Project, Scan, Windowed, walk

T = TypeVar("T")


def bound(text: str) -> Bound:
    return bind(parse(Source(text)), catalog())


def first(query: Bound, kind: type[T]) -> T:
    return next(r for r in walk(query.relation) if isinstance(r, kind))


def test_nothing_is_rewritten_without_a_place() -> None:
    assert rewritten(bound("SELECT 1"), None, "x") == ""


def test_rows_without_places_are_counted_around_the_query() -> None:
    query = bound("SELECT amount FROM orders")
    top = first(query, Project)
    bare = replace(top, values=tuple(replace(v, span=None) for v in top.values))
    (refusal,) = aggregate_only.check(replace(query, relation=bare))
    assert "COUNT(*)" in refusal.instead
    assert "SELECT amount FROM orders" in refusal.instead


def test_a_value_without_a_place_gets_no_clamp() -> None:
    query = bound("SELECT SUM(amount * amount * customer_id) FROM orders")
    aggregate = first(query, Aggregate)
    (call,) = aggregate.calls
    bare = replace(call, args=(replace(call.args[0], span=None),))
    changed = replace(aggregate, calls=(bare,))
    (refusal,) = bounded_values.check(replace(query, relation=changed))
    assert refusal.instead == ""


def test_groups_that_many_share() -> None:
    query = bound("SELECT email, COUNT(*) FROM customers GROUP BY email")
    scan = first(query, Scan)
    email = next(f for f in scan.fields if f.name == "email")
    alone = replace(query, relation=replace(scan, fields=(email,)))
    shared = identifiers._shared
    assert shared(alone, email.number) == "SELECT COUNT(*) FROM customers"
    assert shared(query, -1) == "Group by something that many share."


def test_different_rows_of_one_table_are_its_units() -> None:
    scan = first(bound("SELECT COUNT(*) FROM customers"), Scan)
    distinct = Distinct(scan, scan.fields, scan.privacy)
    found = private_sets._counted(distinct)
    assert found == "SELECT COUNT(DISTINCT customer_id) FROM customers"
    bound(found)


def test_a_comma_becomes_a_join_on_the_unit() -> None:
    text = "SELECT COUNT(*) FROM orders o, visits v"
    query = bound(text)
    start = text.index("visits")
    join = replace(
        first(query, Join),
        condition=None,
        span=Span(start, len(text)),
        on_unit="o.customer_id = v.customer_id",
    )
    found = unit_joins._on_key(query, join)
    assert found == ("SELECT COUNT(*) FROM orders o JOIN visits v ON o.customer_id = v.customer_id")


def test_a_window_without_a_place_is_left_alone() -> None:
    query = bound("SELECT AVG(n) FROM (SELECT COUNT(*) OVER () AS n FROM orders) AS t")
    windowed = first(query, Windowed)
    assert unit_windows._partitioned(query, windowed, None) == ""
