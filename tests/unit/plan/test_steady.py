"""Row weights count rows in one place and add them in another: both must see the same rows."""

from __future__ import annotations

import pytest
from support.corpus import SHOP, World
from support.measured import every_way, plan_of, request

from dpsql.bound import NormClip, RowWeights, WeightsAndGroups
from dpsql.plan.steady import steady

WINDOW = "SELECT channel, COUNT(*) FROM (SELECT customer_id, channel, {} AS v FROM orders) AS t WHERE v >= 0 GROUP BY channel"
NESTED = "SELECT channel, COUNT(*) FROM (SELECT customer_id, channel, {} AS v FROM orders GROUP BY customer_id, channel) AS t WHERE v >= 0 GROUP BY channel"
OVER = "OVER (PARTITION BY customer_id ORDER BY placed)"


@pytest.mark.parametrize(("sql", "same"), [
    ("SELECT channel, COUNT(*) FROM orders GROUP BY channel", True),
    (WINDOW.format(f"RANK() {OVER}"), True),
    (WINDOW.format(f"COUNT(*) {OVER}"), True),
    (WINDOW.format(f"SUM(1) {OVER}"), True),
    (WINDOW.format(f"ROW_NUMBER() {OVER}"), False),
    (WINDOW.format(f"LAG(amount) {OVER}"), False),
    (WINDOW.format(f"SUM(amount) {OVER}"), False),
    (WINDOW.format("COUNT(*) OVER (PARTITION BY customer_id ORDER BY placed ROWS 3 PRECEDING)"), False),
    (NESTED.format("COUNT(*)"), True),
    (NESTED.format("MAX(amount)"), True),
    (NESTED.format("SUM(amount)"), False),
    (NESTED.format("STDDEV(amount)"), False),
])  # fmt: skip
def test_rows_are_weighed_only_where_they_are_the_same_each_time(sql: str, same: bool) -> None:
    plan = plan_of(sql, SHOP)
    assert all(steady(m.input) is same for m in plan.measurements)
    ways = list(every_way(plan, request(3, 1)))
    assert ways
    assert any(isinstance(p.bounding, RowWeights | WeightsAndGroups) for p in ways) is same


def test_rows_that_change_are_not_weighed_because_a_query_says_how_many_count() -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed=7) "
    for over, names in (("RANK()", {"row weights"}), ("ROW_NUMBER()", {"group caps"})):
        sql = WINDOW.format(f"{over} {OVER}").replace("SELECT ", clause, 1)
        ways = [part.bounding for part in every_way(plan_of(sql, SHOP), request(3, 1))]
        assert {b.name for b in ways} == names
        assert all(b.counts.l1 <= 7 for b in ways)


def test_every_group_counts_where_norms_are_clipped() -> None:
    """Even a unit with more rows than declared has no more groups than there are."""
    sql = "SELECT line, quantity, COUNT(*) FROM lineitem GROUP BY line, quantity"
    plan = plan_of(sql, World("far", "trade"))
    ways = [p.bounding for p in every_way(plan, request(1, 1))]
    assert [b.groups for b in ways if isinstance(b, NormClip)] == [7 * 50] * 2
