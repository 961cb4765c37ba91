"""Identifiers are counted, and never shown: which results of aggregates may name a group."""

from __future__ import annotations

import pytest
from support.corpus import SHOP, WORLDS, World
from support.measured import opened

from dpsql.diagnostics.refusal import NotAdmitted, Refused
from dpsql.service import Session
from dpsql.service.plan_cache import PlanCache
from dpsql.sql.bind import aggregate_calls, window_calls

TRADE, UNIT = WORLDS["identifiers"], "customer_region, customer_number"
OVER = f"OVER (PARTITION BY {UNIT} ORDER BY order_id)"


def _by(aggregate: str) -> tuple[World, str]:
    inner = f"SELECT {UNIT}, {aggregate} AS n FROM orders GROUP BY {UNIT}"
    return TRADE, f"SELECT n, COUNT(*) FROM ({inner}) AS t GROUP BY n"


def _over(window: str) -> tuple[World, str]:
    return (
        TRADE,
        f"SELECT n, COUNT(*) FROM (SELECT {window} {OVER} AS n FROM orders) AS t GROUP BY n",
    )


def _email(aggregate: str) -> tuple[World, str]:
    inner = f"SELECT customer_id, {aggregate} AS n FROM customers GROUP BY customer_id"
    return SHOP, f"SELECT n, COUNT(*) FROM ({inner}) AS t GROUP BY n"


COUNTED = (
    _by("COUNT(order_id)"), _by("COUNT(DISTINCT order_id)"), _by("COUNT(*) FILTER (WHERE order_id > 7)"),
    _by("COUNT(order_id) + 1"), _by("SUM(CASE WHEN order_id > 7 THEN 1 ELSE 0 END)"),
    _by("SUM(CAST(order_id IS NOT NULL AS INTEGER))"), _by("BOOL_OR(order_id = 7)"),
    _by("COUNT(CASE WHEN priority = 'low' THEN order_id END)"), _by("APPROX_COUNT_DISTINCT(order_id)"),
    _over("COUNT(order_id)"), _over("ROW_NUMBER()"), _over("RANK()"), _over("DENSE_RANK()"),
    _over("NTILE(3)"), _over("FIRST_VALUE(priority)"), _over("LAG(priority)"),
    _email("COUNT(email)"), _email("MAX(CASE WHEN email LIKE 'a%' THEN 1 ELSE 0 END)"),
)  # fmt: skip
SHOWN = (
    _by("MAX(order_id)"), _by("MIN(order_id)"), _by("SUM(order_id)"), _by("AVG(order_id)"),
    _by("COALESCE(MAX(order_id), 0)"), _by("SUM(CASE WHEN priority = 'low' THEN order_id ELSE 0 END)"),
    _by("MAX(order_id) + COUNT(order_id)"), _over("FIRST_VALUE(order_id)"), _over("LAG(order_id)"),
    _over("MAX(order_id)"), _over("SUM(order_id)"), _email("MAX(email)"), _email("MAX(LENGTH(email))"),
    _email("MAX(LEFT(email, 1))"),
    _email("MIN(CASE WHEN email LIKE 'a%' THEN email ELSE '' END)"),
)  # fmt: skip


def _session(world: World) -> Session:
    here = opened(world)
    here.plans = PlanCache()
    return here.session()


@pytest.mark.parametrize(("world", "sql"), COUNTED)
def test_a_count_of_identifiers_names_groups(world: World, sql: str) -> None:
    """Planned, and admitted by the second check."""
    assert _session(world).prepare(sql).parts


@pytest.mark.parametrize(("world", "sql"), SHOWN)
def test_a_value_of_identifiers_names_none(
    world: World, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refused) as refused:
        _session(world).prepare(sql)
    assert refused.value.code == "DP305"
    for module in (aggregate_calls, window_calls):
        monkeypatch.setattr(module, "identifies", lambda _: False)
    with pytest.raises(NotAdmitted):  # were the planner to miss it, the second check would not
        _session(world).prepare(sql)
