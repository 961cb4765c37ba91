"""GROUPING: told apart from keys that are NULL in rows, at no cost, and refused where it means nothing."""

from __future__ import annotations

import pytest
from support.measured import text_of
from support.services import session

from dpsql.diagnostics.refusal import Refused


def _cost(sql: str) -> object:
    priced = session("shop", "shop", "analyst").prepare(sql)
    return priced.cost, [text_of(part) for part in priced.parts]


def test_it_is_told_from_the_sets_alone() -> None:
    plain = "SELECT channel, COUNT(*) AS n FROM orders GROUP BY ROLLUP (channel)"
    told = "SELECT channel, GROUPING(channel) AS g, COUNT(*) AS n FROM orders GROUP BY ROLLUP (channel)"
    assert _cost(told) == _cost(plain)


def test_levels_that_are_added_up_have_it_too() -> None:
    sql = "SELECT country, channel, GROUPING(country, channel) AS g, COUNT(*) AS n FROM customers JOIN orders USING (customer_id) GROUP BY GROUPING SETS ((country, channel), (country))"
    found = session("shop", "shop", "analyst").execute(sql).table
    assert set(found.column(2).to_pylist()) == {0, 1}


@pytest.mark.parametrize(
    ("code", "sql"),
    [
        ("DP111", "SELECT GROUPING(amount) FROM orders GROUP BY ROLLUP (channel)"),
        ("DP111", "SELECT GROUPING(channel) FROM orders"),
        (
            "DP110",
            f"SELECT GROUPING({', '.join(['channel'] * 32)}) FROM orders GROUP BY ROLLUP (channel)",
        ),
    ],
)
def test_it_takes_keys(code: str, sql: str) -> None:
    with pytest.raises(Refused) as refused:
        session("shop", "shop", "analyst").prepare(sql)
    assert refused.value.first.code == code


def test_it_stands_in_no_condition_on_rows() -> None:
    with pytest.raises(Refused):
        session("shop", "shop", "analyst").prepare(
            "SELECT COUNT(*) FROM orders WHERE GROUPING(channel) = 0 GROUP BY ROLLUP (channel)"
        )
