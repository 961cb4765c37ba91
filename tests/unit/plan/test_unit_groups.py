"""Keys from the unit's own row make one group of a unit; all other keys may make several."""

from __future__ import annotations

import pytest
from support.corpus import SHOP
from support.measured import every_way, plan_of, request

from dpsql.bound import GroupCaps
from dpsql.catalog.statistic import Units
from dpsql.plan.unit_groups import in_one_group
from dpsql.price.price import price

JOIN = "FROM orders AS o JOIN customers AS c ON c.customer_id = o.customer_id"
UNITS = "COUNT(DISTINCT o.customer_id)"


RANKED = (
    "SELECT o.customer_id, c.country AS r, "
    f"RANK() OVER (PARTITION BY o.customer_id ORDER BY o.placed) AS n {JOIN}"
)
OWN_FIRST = "FROM customers AS c LEFT JOIN orders AS o ON c.customer_id = o.customer_id"
MAYBE_NONE = JOIN.replace("JOIN", "LEFT JOIN") + " AND o.amount > 5"
COUNTED = "SELECT customer_id, channel, COUNT(*) AS n FROM orders GROUP BY customer_id, channel"


@pytest.mark.parametrize(("sql", "one"), [
    (f"SELECT c.country, {UNITS} {JOIN} GROUP BY c.country", True),
    (f"SELECT c.country, c.age / 10, {UNITS} {JOIN} WHERE o.amount > 5 GROUP BY 1, 2", True),
    (f"SELECT a, {UNITS} FROM (SELECT o.customer_id, c.age + 1 AS a {JOIN}) AS o GROUP BY a", True),
    (f"SELECT r, {UNITS} FROM ({RANKED}) AS o WHERE n < 4 GROUP BY r", True),
    (f"SELECT c.country, COUNT(DISTINCT c.customer_id) {OWN_FIRST} GROUP BY c.country", True),
    (f"SELECT {UNITS} FROM orders AS o", True),
    (f"SELECT o.channel, {UNITS} {JOIN} GROUP BY o.channel", False),
    (f"SELECT c.country, o.channel, {UNITS} {JOIN} GROUP BY 1, 2", False),
    (f"SELECT c.age + o.amount, {UNITS} {JOIN} GROUP BY 1", False),
    (f"SELECT c.country, {UNITS} {MAYBE_NONE} GROUP BY c.country", False),
    (f"SELECT n, COUNT(DISTINCT customer_id) FROM ({COUNTED}) AS t GROUP BY n", False),
])  # fmt: skip
def test_keys_of_the_units_own_row_make_one_group(sql: str, one: bool) -> None:
    [*found] = plan_of(sql, SHOP).measurements
    assert found
    assert all(in_one_group(m) is one for m in found)


@pytest.mark.parametrize("key", ["c.country", "c.city"], ids=["public", "private"])
def test_a_unit_counts_in_one_group(key: str) -> None:
    """The noise of a number of units is that of one group, and so is the threshold of groups."""
    plan = plan_of(f"SELECT {key}, {UNITS} {JOIN} GROUP BY {key}", SHOP)
    for way in every_way(plan, request(3, 1)):
        assert way.bounding.groups == 1
        assert isinstance(way.bounding, GroupCaps)
        assert way.bounding.limit, "the statement keeps one, whatever the data holds"
        assert all(n.sensitivity.l1 == 1 for n in way.noised if n.statistic == Units())
    [part] = price(plan, request(3, 1)).parts
    assert part.bounding.groups == 1


def test_a_query_may_let_more_groups_count() -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed=2) "
    sql = f"SELECT c.country, COUNT(*) {JOIN} GROUP BY c.country".replace("SELECT ", clause, 1)
    ways = [part.bounding for part in every_way(plan_of(sql, SHOP), request(3, 1))]
    assert {b.groups for b in ways} == {2}
