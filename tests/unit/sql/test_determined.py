"""Groups that lie within one unit because of what they are grouped by."""

from __future__ import annotations

import pytest
from support.measured import text_of
from support.services import session

from dpsql.diagnostics.refusal import Refused

PER_ORDER = "SELECT order_id, COUNT(*) AS n FROM lineitem GROUP BY order_id"


@pytest.mark.parametrize(
    "sql",
    [
        PER_ORDER,
        f"{PER_ORDER} HAVING COUNT(*) > 3 ORDER BY n DESC LIMIT 10",
        "SELECT l.order_id, o.priority, SUM(l.price) FROM lineitem AS l JOIN orders AS o ON o.order_id = l.order_id GROUP BY l.order_id, o.priority",
        "SELECT order_id, line, SUM(price) FROM lineitem GROUP BY order_id, line",
        "SELECT order_id, COUNT(*) FROM returns GROUP BY order_id, line",
    ],
)
def test_one_row_for_each_order_is_a_row_of_one_customer(sql: str) -> None:
    with pytest.raises(Refused) as refused:
        session("far", "trade", "analyst").prepare(sql)
    assert refused.value.code in ("DP101", "DP104")


def test_they_are_grouped_by_their_unit_as_well() -> None:
    plan = session("far", "trade", "analyst").prepare(f"SELECT AVG(n) FROM ({PER_ORDER}) AS t")
    (part,) = plan.parts
    grouped = 'GROUP BY t1."order_id", t2."customer_'
    assert grouped in text_of(part), "by the order and by its customer"


@pytest.mark.parametrize("key", ["part_id", "line", "quantity, line"])
def test_keys_that_many_units_share_are_measured(key: str) -> None:
    sql = f"SELECT SUM(n) FROM (SELECT {key}, COUNT(*) AS n FROM lineitem GROUP BY {key}) AS t"
    (part,) = session("far", "trade", "analyst").prepare(sql).parts
    assert len(part.measurement.keys) == key.count(",") + 1
