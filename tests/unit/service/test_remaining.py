"""ESTIMATE_REMAINING_DP_AGGREGATES: how much may still be asked, from the ledger alone."""

from __future__ import annotations

import pytest
from support.services import real_service

from dpsql.diagnostics.refusal import Refused
from dpsql.service import Service

CALL = "SELECT * FROM TABLE(SNOWFLAKE.DATA_PRIVACY.ESTIMATE_REMAINING_DP_AGGREGATES('{}'))"


def row(service: Service, sql: str, dialect: str = "postgres") -> list[object]:
    session = service.session("analyst")
    session.execute(f"SET dpsql.dialect = '{dialect}'")
    reply = session.execute(sql)
    assert reply.cost.epsilon == 0
    (found,) = reply.table.to_pylist()
    return list(found.values())


def test_the_estimate_is_true() -> None:
    """So many queries are answered, and no more."""
    with real_service("shop", "shop") as opened:
        number, limit, window, spent = row(opened, CALL.format("orders"))
        assert (limit, window, spent) == (1.0, "NEVER", 0.0)
        assert isinstance(number, int)
        session = opened.session("analyst")
        for i in range(number):
            session.execute(f"SELECT COUNT(*) FROM orders WHERE amount > {i}")
            assert row(opened, CALL.format("orders"))[0] == number - i - 1
        with pytest.raises(Refused) as caught:
            session.execute("SELECT COUNT(*) FROM orders WHERE amount > 400")
        assert caught.value.code == "DP402"


def test_each_dialect_reads_it_and_it_is_a_table_like_any_other() -> None:
    with real_service("shop", "shop") as opened:
        for dialect in ("duckdb", "bigquery", "snowflake"):
            assert row(opened, CALL.format("public.ORDERS"), dialect)[1:] == [1.0, "NEVER", 0.0]
        short = "SELECT x.budget_limit FROM ESTIMATE_REMAINING_DP_AGGREGATES('customers') AS x"
        assert row(opened, short) == [1.0]
        assert row(opened, "SELECT COUNT(*) FROM dpsql.remaining") == [3]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (CALL.format("nothing"), "DP104"),
        (CALL.format("countries"), "DP104"),
        ("SELECT * FROM ESTIMATE_REMAINING_DP_AGGREGATES(orders)", "DP114"),
        ("SELECT * FROM ESTIMATE_REMAINING_DP_AGGREGATES('orders', 1)", "DP114"),
        ("SELECT * FROM TABLE(SOMETHING('orders'))", "DP107"),
    ],
)
def test_what_is_no_private_table_is_refused(sql: str, code: str) -> None:
    with real_service("shop", "shop") as opened:
        with pytest.raises(Refused) as caught:
            opened.session("analyst").execute(sql)
        assert caught.value.code == code


WINDOWS = {
    "session": (("session: {epsilon: 1}", "session: {epsilon: 1, per: day}"), "DAILY", 1.0),
    "role": (("    epsilon: 5\n    delta: 1e-6", "    epsilon: 1\n    delta: 0"), "MONTHLY", 1.0),
    "dataset": (
        ("{epsilon: 20, delta: 1e-5, composition: zcdp}", "{epsilon: 1, per: week}"),
        "WEEKLY",
        1.0,
    ),
    "table": (
        ("  orders:\n", "  orders:\n    account: {epsilon: 0.5, delta: 0, per: year}\n"),
        "YEARLY",
        0.5,
    ),
}


@pytest.mark.parametrize("holder", WINDOWS)
def test_the_tightest_account_speaks_with_its_window(holder: str) -> None:
    (old, new), window, limit = WINDOWS[holder]

    def change(text: str) -> str:
        assert old in text
        changed = text.replace(old, new, 1)
        if holder == "dataset":
            changed = changed.replace("delta: 1e-6", "delta: 0").replace("epsilon: 5", "epsilon: 1")
            changed = changed.replace("session: {epsilon: 2", "session: {epsilon: 1")
        return changed

    with real_service("shop", "shop", change) as opened:
        assert row(opened, CALL.format("orders"))[1:] == [limit, window, 0.0]
