"""How large a number can be, and which way one more row moves it."""

from __future__ import annotations

import pytest

from dpsql.engines.guard.facts import ABOVE, BELOW, WHOLE, Fact
from dpsql.engines.guard.sizes import arithmetic

TOTAL = Fact(WHOLE, 0, 10, 63, many=ABOVE)
"""A number of one unit that grows with its rows."""


@pytest.mark.parametrize(
    ("low", "moved"), [(1, ABOVE), (0, ABOVE), (-1, ABOVE | BELOW)], ids=["above", "zero", "below"]
)
@pytest.mark.parametrize("name", ["*", "//"])
def test_a_factor_that_is_not_negative_turns_nothing_round(name: str, low: int, moved: int) -> None:
    assert arithmetic(name, [TOTAL, Fact(WHOLE, low, 5, 63)], tried=True).many == moved
