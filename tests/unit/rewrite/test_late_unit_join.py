"""The path to the unit is followed last, and that changes no number."""

from __future__ import annotations

import duckdb
import pytest
from support.corpus import WORLDS
from support.datasets import in_memory
from support.measured import every_way, exact, leave_out, plan_of, request

from dpsql.rewrite.late_unit_join import late_unit_join

TRADE = WORLDS["trade"]
LATER = (
    "SELECT COUNT(*), SUM(quantity) FROM lineitem",
    "SELECT returned, SUM(price), COUNT(*) FILTER (WHERE line > 2) FROM lineitem WHERE quantity > 9 GROUP BY returned",
    "SELECT big, COUNT(*) FROM (SELECT quantity > 20 AS big, line FROM lineitem WHERE line < 5) AS t GROUP BY big",
    "SELECT COUNT(*), COUNT(p.brand) FROM lineitem AS l LEFT JOIN part AS p ON l.part_id = p.part_id",
    "SELECT p.brand, SUM(l.quantity) FROM part AS p JOIN lineitem AS l ON l.part_id = p.part_id GROUP BY p.brand",
    "SELECT COUNT(*) FROM lineitem AS l WHERE EXISTS (SELECT 1 FROM part AS p WHERE p.part_id = l.part_id)",
    "SELECT COUNT(*) FROM lineitem AS l WHERE NOT EXISTS (SELECT 1 FROM part AS p WHERE p.part_id = l.part_id AND p.brand = 'x')",
    "SELECT part_id, COUNT(*), SUM(quantity) FROM lineitem WHERE NOT returned GROUP BY part_id",
    "SELECT COUNT(*), COUNT(reason) FROM returns",
)
AT_ONCE = (
    "SELECT priority, COUNT(*) FROM orders GROUP BY priority",
    "SELECT AVG(n) FROM (SELECT order_id, COUNT(*) AS n FROM lineitem GROUP BY order_id) AS t",
    "SELECT COUNT(*) FROM lineitem AS a JOIN lineitem AS b ON a.order_id = b.order_id AND a.line = b.line",
)


def ways(sql: str) -> list[str]:
    return [part.sql for part in every_way(plan_of(sql, TRADE), request(3, 1))]


@pytest.mark.parametrize("sql", LATER)
def test_keys_and_values_are_computed_before_the_path(
    sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection: duckdb.DuckDBPyConnection = in_memory("trade")
    parts = list(every_way(plan_of(sql, TRADE), request(3, 1)))
    leave_out(monkeypatch, late_unit_join)
    others = list(every_way(plan_of(sql, TRADE), request(3, 1)))
    assert all(" AS n JOIN " in part.sql for part in parts)
    assert not any(" AS n JOIN " in part.sql for part in others)
    assert exact(connection, parts) == exact(connection, others)


@pytest.mark.parametrize("sql", AT_ONCE)
def test_where_units_are_needed_at_once_the_path_is_followed_at_once(sql: str) -> None:
    assert ways(sql)
    assert not any(" AS n JOIN " in text for text in ways(sql))


def test_every_step_of_the_path_is_followed() -> None:
    for text in ways("SELECT COUNT(*) FROM returns"):
        assert 'JOIN "lineitem" AS o0 ON n.u0 = o0."order_id" AND n.u1 = o0."line"' in text
        assert 'JOIN "orders" AS o1 ON o0."order_id" = o1."order_id"' in text
