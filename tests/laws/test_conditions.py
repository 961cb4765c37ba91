"""Where a truth value is due, nothing else is taken.

An engine casts whatever stands there, and the cast of a text fails for some rows: whether a question
is answered would then tell what one row holds, without noise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
from support.services import service

from dpsql.diagnostics.refusal import NotAdmitted, Refused
from dpsql.engines.duckdb.guard import terms
from dpsql.service import Session
from dpsql.sql.bind import aggregate_calls

Patch = pytest.MonkeyPatch
PER_PERSON = "FROM customers GROUP BY customer_id"
PLACES = (
    "SELECT COUNT(*) FROM customers WHERE {}",
    "SELECT COUNT(*) FROM customers WHERE NOT {}",
    "SELECT COUNT(*) FROM customers WHERE {} AND age > 3",
    "SELECT COUNT(*) FROM customers WHERE age > 3 OR {}",
    "SELECT COUNT(*) FROM customers WHERE ({}) IS TRUE",
    "SELECT COUNT(*) FROM customers WHERE ({}) IS NOT FALSE",
    "SELECT COUNT(*) FROM customers JOIN orders ON customers.customer_id = orders.customer_id AND {}",
    "SELECT COUNT(*) FILTER (WHERE {}) FROM customers",
    "SELECT COUNT_IF({}) FROM customers",
    "SELECT COUNTIF({}) FROM customers",
    "SELECT BOOL_AND({}) FROM customers",
    "SELECT BOOL_OR({}) FROM customers",
    "SELECT SUM(CASE WHEN {} THEN 1 ELSE 0 END) FROM customers",
    "SELECT SUM(IF({}, 1, 0)) FROM customers",
    "SELECT SUM(IIF({}, 1, 0)) FROM customers",
    f"SELECT SUM(n) FROM (SELECT customer_id, COUNT_IF({{}}) AS n {PER_PERSON}) AS t",
    f"SELECT SUM(n) FROM (SELECT customer_id, COUNT(*) FILTER (WHERE {{}}) AS n {PER_PERSON}) AS t",
    f"SELECT COUNT(*) FROM (SELECT customer_id, COUNT(*) AS n {PER_PERSON} HAVING MAX(CAST(({{}}) AS TEXT))) AS t",
)
NO_TRUTH = (
    "'x'", "city", "UPPER(city)", "COALESCE(city, 'x')", "CASE WHEN age = 42 THEN 'x' ELSE 'true' END",
    "age", "age * 1.5", "joined",
)  # fmt: skip


@functools.cache
def asked() -> Session:
    return service("shop", "shop").session("analyst")


def taken(place: str, session: Callable[[], Session] = asked) -> list[str]:
    """The values without a truth value that are explained there: only the charge would follow."""
    found = []
    for value in NO_TRUTH:
        try:
            session().explain(place.format(value))
        except Refused:
            continue
        found.append(value)
    return found


@pytest.mark.parametrize("place", PLACES)
def test_only_truth_values_are_conditions(place: str) -> None:
    assert taken(place) == []


@pytest.mark.parametrize("place", [p for p in PLACES if "MAX(" not in p])
def test_truth_values_are(place: str) -> None:
    assert "measurement m0" in asked().explain(place.format("age > 42"))


def test_a_text_that_is_counted_as_a_truth_value_would_be_noticed(monkeypatch: Patch) -> None:
    """The binder forgets the type: the second check stops it. Both forget: the law sees it."""
    real = aggregate_calls.check_kinds

    def forgetful(node: object, name: str, kinds: object, args: object) -> None:
        if name != "count_if":
            real(node, name, kinds, args)  # type: ignore[arg-type]

    monkeypatch.setattr(aggregate_calls, "check_kinds", forgetful)
    [place] = [p for p in PLACES if "COUNT_IF({}) FROM" in p]
    fresh = functools.cache(lambda: service("shop", "shop").session("analyst"))
    with pytest.raises(NotAdmitted):
        taken(place, fresh)
    monkeypatch.setattr(terms.Terms, "condition", terms.Terms.fact)
    assert "city" in taken(place, fresh)
