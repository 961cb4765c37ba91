"""What each strategy says of itself, held against its limits."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.bound import (
    STRATEGIES,
    Bounding,
    GroupCaps,
    NormClip,
    OneRow,
    PreparedRows,
    RowWeights,
    UnitTotals,
    VectorClip,
    WeightsAndGroups,
)
from dpsql.price import show

EACH: tuple[tuple[Bounding, int], ...] = (
    (OneRow(), 1),
    (RowWeights(7, 2), 7),
    (UnitTotals(4), 4),
    (GroupCaps(3, limit=True, per_group=4), 4),
    (WeightsAndGroups(7, 3, limit=True), 7),
    (NormClip(3, Fraction(5, 2)), 3),
    (VectorClip(3, 2, Fraction(2), Fraction(6), Fraction(2)), 3),
    (PreparedRows(6, 2), 6),
)


def test_none_is_left_out() -> None:
    assert tuple(type(strategy) for strategy, _ in EACH) == STRATEGIES


@pytest.mark.parametrize(("strategy", "most"), EACH, ids=lambda x: getattr(x, "name", str(x)))
def test_no_more_rows_of_a_unit_count_in_a_group_than_its_limits_let(
    strategy: Bounding, most: int
) -> None:
    assert strategy.rows_in_group == most
    assert strategy.counts.l1 >= 1
    assert strategy.bin_bits >= strategy.bits
    assert strategy.counts.l2_squared <= strategy.counts.l1**2
    assert (strategy.most_read is None) == (not isinstance(strategy, PreparedRows))
    if not isinstance(strategy, RowWeights):  # whose groups must be public
        assert strategy.touched(None) >= 1


@pytest.mark.parametrize("limit", [True, False])
def test_people_are_told_of_a_limit_of_groups_where_there_is_one(*, limit: bool) -> None:
    for strategy in (GroupCaps(3, limit, 4), WeightsAndGroups(7, 3, limit)):
        assert ("at most 3 groups of a unit" in list(show._limits(strategy))) is limit
