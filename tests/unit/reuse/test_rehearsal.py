"""The price of a dashboard: what an answer would be stored as is rehearsed, whatever its types."""

from __future__ import annotations

import pytest
from support.services import service

BY_DATE = "SELECT placed, COUNT(*), SUM(amount) FROM orders GROUP BY placed"
MIDDLE = "SELECT channel, MEDIAN(placed) FROM orders GROUP BY channel"
CITIES = "SELECT city, COUNT(*) FROM customers GROUP BY city"


@pytest.mark.parametrize("sql", [BY_DATE, MIDDLE, CITIES])
def test_what_is_asked_again_is_paid_once(sql: str) -> None:
    first, again = service("shop", "shop").session("analyst").price([sql, sql])
    assert first.refused is None
    assert first.due == first.alone
    assert first.alone.epsilon > 0
    assert again.due.epsilon == 0


def test_what_one_statement_measures_another_adds_up() -> None:
    by_channel = "SELECT channel, COUNT(*) FROM orders GROUP BY channel"
    prices = service("shop", "shop").session("analyst").price(
        ["SET dpsql.epsilon = 0.1", by_channel, "SET dpsql.epsilon = 0.01", "SELECT COUNT(*) FROM orders"]
    )  # fmt: skip
    assert [float(price.due.epsilon) for price in prices] == [0.1, 0]
