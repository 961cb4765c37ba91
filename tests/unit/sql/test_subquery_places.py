"""A query inside a condition, with or without FROM, is answered as SQL has it, or refused."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from support.datasets import database
from support.services import service
from support.shop import bound

from dpsql.checks import private_subqueries
from dpsql.diagnostics.refusal import EngineFailed, Refused
from dpsql.ir.relations import subqueries as queries_in
from dpsql.ir.relations import walk_relations
from dpsql.service import Session
from dpsql.sql.bind import subqueries

PLACES = (
    "SELECT COUNT(*) FROM customers WHERE EXISTS ({})",
    "SELECT COUNT(*) FROM customers WHERE age > 30 OR NOT EXISTS ({})",
    "SELECT COUNT(*) FROM customers WHERE city IN ({})",
    "SELECT COUNT(*) FROM customers WHERE city = ({})",
    "SELECT COUNT(*) FILTER (WHERE EXISTS ({})) FROM customers",
    "SELECT COUNT(*), ({}) FROM customers",
    "SELECT COUNT(*) FROM countries WHERE EXISTS ({})",
)
LISTS = ("city", "city || 'x'", "DISTINCT city", "COUNT(*)", "MAX(city)", "'city 9'",
         "ROW_NUMBER() OVER (ORDER BY city)", "country")  # fmt: skip
SOURCES = ("", " WHERE age > 40", " GROUP BY city", " ORDER BY city", " LIMIT 1",
           " FROM countries AS c WHERE c.country = customers.country",
           " FROM countries AS c WHERE c.country = countries.country",
           " FROM (SELECT city) AS t", " UNION SELECT 'city 9'")  # fmt: skip


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with service("oracle", "shop") as here:
        yield here.session("oracle")


def test_every_query_inside_is_answered_as_sql_has_it_or_refused(session: Session) -> None:
    answered = 0
    with duckdb.connect(str(database("shop")), read_only=True) as plain:
        for sql in (p.format(f"SELECT {i}{s}") for p in PLACES for i in LISTS for s in SOURCES):
            try:
                table = session.execute(sql).table
            except Refused:
                continue
            answered += 1
            assert table.num_rows == 1, sql
            row = tuple(column[0].as_py() for column in table.columns)
            assert row == plain.execute(sql).fetchone(), sql
    assert answered > 40


@pytest.mark.parametrize("order", ["(SELECT NULL LIMIT 1)", "CASE WHEN TRUE THEN NULL END", "NULL"])
def test_an_order_by_nothing_is_none(session: Session, order: str) -> None:
    table = session.execute(f"SELECT COUNT(*) AS n FROM customers ORDER BY {order}").table
    assert table.num_rows == 1


@pytest.mark.parametrize(
    "inside", ["SELECT city", "SELECT DISTINCT city", "SELECT city FROM (SELECT city) AS t"]
)
def test_a_column_that_is_passed_on_is_still_of_the_query_around(inside: str) -> None:
    condition = bound(f"SELECT COUNT(*) FROM customers WHERE age > 1 OR city IN ({inside})")
    inner = next(s for r in walk_relations(condition.relation) for s in queries_in(r))
    assert subqueries.free_columns(inner.relation)


def test_a_column_around_that_is_taken_for_one_inside_is_noticed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (subqueries, private_subqueries):
        monkeypatch.setattr(module, "free_columns", lambda _: set())
    with pytest.raises((EngineFailed, KeyError)):
        session.execute("SELECT COUNT(*) FROM customers WHERE age > 2 AND EXISTS (SELECT city)")
