"""How large a number can be, and which way one more row moves it."""

from __future__ import annotations

import pytest

from dpsql.engines.duckdb.guard.facts import ABOVE, BELOW, WHOLE, Fact, Unsafe
from dpsql.engines.duckdb.guard.sizes import arithmetic

TOTAL = Fact(WHOLE, 0, 10, 63, many=ABOVE)
"""A number of one unit that grows with its rows."""


@pytest.mark.parametrize(
    ("low", "moved"), [(1, ABOVE), (0, ABOVE), (-1, ABOVE | BELOW)], ids=["above", "zero", "below"]
)
@pytest.mark.parametrize("name", ["*", "//"])
def test_a_factor_that_is_not_negative_turns_nothing_round(name: str, low: int, moved: int) -> None:
    assert arithmetic(name, [TOTAL, Fact(WHOLE, low, 5, 63)], tried=True).many == moved


@pytest.mark.parametrize(("low", "high"), [(None, 5), (5, None), (None, None), (0, 2**63 - 2)])
def test_a_sum_without_ends_or_at_the_end_of_its_type_is_refused(
    low: int | None, high: int | None
) -> None:
    added = [Fact(WHOLE, low, high, 63), Fact(WHOLE, 1, 2, 63)]
    with pytest.raises(Unsafe, match="may overflow"):
        arithmetic("+", added, tried=False)


def test_a_sum_that_fits_its_type_has_ends() -> None:
    found = arithmetic("+", [Fact(WHOLE, 0, 2**63 - 3, 63), Fact(WHOLE, 1, 2, 63)], tried=False)
    assert (found.low, found.high) == (1, 2**63 - 1)
