"""What is read once, what is looked up without its path, and where groups are counted first."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from support.corpus import SHOP, WORLDS, World
from support.datasets import in_memory
from support.measured import every_way, exact, leave_out, plan_of, request, text_of

from dpsql.bound import RowWeights, WeightsAndGroups
from dpsql.bound.first_groups import GROUPS
from dpsql.price.priced import PricedMeasurement
from dpsql.rewrite.draft import ROWS
from dpsql.rewrite.drop_unit_path import drop_unit_path

TRADE = WORLDS["trade"]
JOINED = "FROM customers AS c JOIN orders AS o ON o.customer_id = c.customer_id"
LINES = "SELECT COUNT(*) FROM orders AS o WHERE {} (SELECT 1 FROM lineitem AS l WHERE {})"


def weighed(sql: str, world: World, groups: int = 3) -> Iterator[PricedMeasurement]:
    """Its measurements with the weights of rows, where they may have some."""
    for part in every_way(plan_of(sql, world), request(groups, 1)):
        if isinstance(part.bounding, RowWeights | WeightsAndGroups):
            yield part


@pytest.mark.parametrize(("sql", "world", "once"), [
    ("SELECT channel, COUNT(*) FROM orders GROUP BY channel", SHOP, False),
    ("SELECT channel, COUNT(*) FROM orders WHERE amount > 5 GROUP BY channel", SHOP, False),
    (f"SELECT channel, COUNT(*) {JOINED} GROUP BY channel", SHOP, False),
    (f"SELECT channel, COUNT(*) {JOINED} AND o.amount > c.age GROUP BY channel", SHOP, True),
    (f"SELECT channel, COUNT(*) {JOINED} WHERE amount > 5 GROUP BY channel", SHOP, True),
    ("SELECT n, COUNT(*) FROM (SELECT placed, COUNT(*) AS n FROM orders GROUP BY customer_id, placed) AS t WHERE n < 9 GROUP BY n", SHOP, True),
    ("SELECT channel, COUNT(*) FROM (SELECT channel, RANK() OVER (PARTITION BY customer_id ORDER BY amount) AS r FROM orders) AS t GROUP BY channel", SHOP, True),
    ("SELECT line, COUNT(*) FROM lineitem GROUP BY line", TRADE, False),
    ("SELECT line, COUNT(*) FROM lineitem WHERE returned GROUP BY line", TRADE, True),
    ("SELECT line, COUNT(*) FROM orders AS o CROSS JOIN (VALUES (1), (2)) AS v(line) GROUP BY line", TRADE, False),
])  # fmt: skip
def test_rows_that_are_dear_are_computed_once(sql: str, world: World, once: bool) -> None:
    stored = f'"{ROWS}" AS MATERIALIZED'
    found = [stored in text_of(part) for part in weighed(sql, world)]
    assert found
    assert set(found) == {once}


def test_written_rows_give_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = (
        f"SELECT channel, COUNT(*), SUM(amount), COUNT(*) FILTER (WHERE age > 40) {JOINED} WHERE amount > 5 GROUP BY channel",
        f"SELECT placed, COUNT(*), SUM(amount) {JOINED} WHERE amount > 5 GROUP BY placed HAVING COUNT(*) > 1",
    )
    connection: duckdb.DuckDBPyConnection = in_memory("dirty")
    for sql in queries:
        parts = list(weighed(sql, SHOP, 60))
        monkeypatch.setattr("dpsql.rewrite.share_rows.is_costly", lambda _: False)
        others = list(weighed(sql, SHOP, 60))
        monkeypatch.undo()
        assert all(text_of(a) != text_of(b) for a, b in zip(parts, others, strict=True))
        assert exact(connection, parts) == exact(connection, others)


@pytest.mark.parametrize(("condition", "paths"), [
    ("EXISTS (SELECT 1 FROM lineitem AS l WHERE l.order_id = o.order_id)", 0),
    ("NOT EXISTS (SELECT 1 FROM lineitem AS l WHERE l.order_id = o.order_id AND l.quantity > 9)", 0),
    ("order_id IN (SELECT order_id FROM lineitem WHERE returned)", 0),
    ("order_id IN (SELECT order_id FROM lineitem GROUP BY order_id HAVING COUNT(*) > 2)", 1),
    ("priority IN (SELECT brand FROM part)", 0),
    ("EXISTS (SELECT 1 FROM customer AS c WHERE c.region = o.customer_region AND c.number = o.customer_number)", 0),
])  # fmt: skip
def test_rows_that_are_looked_up_follow_no_path(condition: str, paths: int) -> None:
    sql = f"SELECT COUNT(*) FROM orders AS o WHERE {condition}"
    for part in every_way(plan_of(sql, TRADE), request(3, 1)):
        assert text_of(part).count(' JOIN "orders"') == paths * text_of(part).count(
            ' FROM "orders" AS'
        )


def test_rows_without_their_path_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    connection: duckdb.DuckDBPyConnection = in_memory("trade")
    own = "l.order_id = o.order_id AND l.returned"
    queries = [LINES.format(word, own) for word in ("EXISTS", "NOT EXISTS")]
    queries.append(
        "SELECT COUNT(*) FROM lineitem AS a WHERE NOT EXISTS"
        " (SELECT 1 FROM lineitem AS b WHERE b.order_id = a.order_id AND b.line > a.line)"
    )
    for sql in queries:
        parts = list(every_way(plan_of(sql, TRADE), request(3, 1)))
        leave_out(monkeypatch, drop_unit_path)
        others = list(every_way(plan_of(sql, TRADE), request(3, 1)))
        monkeypatch.undo()
        assert all(text_of(a) != text_of(b) for a, b in zip(parts, others, strict=True))
        assert exact(connection, parts) == exact(connection, others)


def test_places_are_drawn_for_units_with_many_groups_alone() -> None:
    sql = (
        "SELECT city || channel, COUNT(*) FROM customers JOIN orders USING (customer_id)"
        " GROUP BY 1 HAVING COUNT(*) > 1"
    )
    for groups, once in ((49, False), (50, True)):
        every = every_way(plan_of(sql, SHOP), request(groups, 1))
        parts = [part for part in every if getattr(part.bounding, "limit", False)]
        assert {GROUPS in text_of(part) for part in parts} == {once}
        assert all("row_number()" in text_of(part) for part in parts)
