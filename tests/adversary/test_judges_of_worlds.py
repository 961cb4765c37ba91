"""Judges of worlds with several kinds of units speak when something is made wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.adversary.attack import attack
from tests.adversary.model import Row, Step
from tests.adversary.ratings import RATINGS
from tests.adversary.wrong import measured, said

STOCK = replace(
    RATINGS,
    policy=RATINGS.policy.replace("{key: u}", "{key: u, group_size: 3}, item: {table: stock, key: row}")
    .replace("tables:\n", "tables:\n  stock: {unit: item, columns: {n: {type: bigint}}}\n"),
    ddl=(*RATINGS.ddl, "CREATE TABLE stock (n BIGINT)"),
    rows=(*RATINGS.rows, *(Row("stock", (str(i % 3),), f"item:{i}") for i in range(90))),
    group_size=3,
)  # fmt: skip
"""Three people are protected together, and each item by itself."""


@pytest.mark.parametrize("relation", ["order", "without"])
def test_as_many_units_count_together_as_the_policy_says_of_their_kind(relation: Any) -> None:
    owners = ("item:4",) if relation == "without" else ()
    asked = ("stock GROUP BY 1", "(SELECT x AS n FROM t) AS t GROUP BY 1")
    steps = [Step("ask", f"SELECT n AS g, COUNT(*) AS m FROM {text}") for text in asked]
    found = attack(STOCK, relation, owners, steps)
    assert [t.error for t in found.left.transcripts] == [None, None]
    assert said(found) == {}
    for number, least in enumerate((2, 4)):
        low = measured(found, number, lambda m, n=least: replace(m, shown=(n, 0)))  # type: ignore[misc]
        assert "and delta" in said(low)["selection"]
