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


def test_the_tightest_account_speaks_by_its_window() -> None:
    def monthly(text: str) -> str:
        return (
            text.replace("session:", "per: month\n    session:")
            if "per: month" not in text
            else text
        )

    with real_service("shop", "shop", monthly) as opened:
        assert row(opened, CALL.format("orders"))[2] in ("NEVER", "MONTHLY")
