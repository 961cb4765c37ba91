"""Aggregates that depend on the row around them: what they are joined as, and what is refused."""

from __future__ import annotations

import pytest
from support.measured import text_of
from support.shop import priced, refusal

AVERAGE = "SELECT COUNT(*) FROM orders AS o WHERE o.amount > (SELECT AVG(i.amount) FROM orders AS i WHERE {})"


def test_of_the_same_unit_nothing_is_released_first() -> None:
    plan = priced(AVERAGE.format("i.customer_id = o.customer_id"))
    assert len(plan.parts) == 1
    assert "$x" not in text_of(plan.parts[0])


def test_of_many_units_it_is_measured_and_comes_back_noised() -> None:
    plan = priced(AVERAGE.format("i.channel = o.channel"))
    first, second = map(text_of, plan.parts)
    assert "$x" not in first
    assert second.count('"orders"') == 1
    assert "$x0_" in second


@pytest.mark.parametrize(
    "sql",
    [
        AVERAGE.format("i.amount < o.amount"),
        AVERAGE.format("i.channel = o.channel AND i.amount < o.amount"),
        AVERAGE.format("i.channel = o.channel").replace(
            "AVG(i.amount)", "AVG(i.amount - o.amount)"
        ),
        AVERAGE.format("i.channel = o.channel").replace("AVG(i.amount)", "COUNT(*)"),
        "SELECT COUNT(*) FROM orders AS o WHERE EXISTS (SELECT 1 FROM visits AS v WHERE v.seconds > o.amount)",
    ],
)
def test_what_pairs_rows_of_units_is_refused(sql: str) -> None:
    refused = refusal(sql)
    assert refused is not None
    assert refused.code in ("DP112", "DP301")


@pytest.mark.parametrize("name", ["amount", "o.amount", "nobody", "n.amount"])
def test_a_name_is_looked_for_once_in_each_query_around(name: str) -> None:
    """Twice in each would be a trillion times here."""
    sql = f"SELECT COUNT(*) FROM orders AS o WHERE {'(SELECT ' * 40}{name} > 3{')' * 40}"
    assert refusal(sql) is not None
