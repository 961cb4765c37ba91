"""A unit's first groups: the same, whether all groups are put in order or those that may be among them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import duckdb
import pytest
from support.corpus import SHOP, World
from support.datasets import in_memory
from support.measured import Exact, exact, forced, leave_out, plan_of, request, text_of

from dpsql.bound import Bounding, GroupCaps, WeightsAndGroups
from dpsql.engines.duckdb.terms import Scope, term
from dpsql.price import price
from dpsql.price.priced import PricedMeasurement
from dpsql.rewrite.rank_prefilter import PLACES, _reach, rank_prefilter

DAYS = (
    "SELECT placed, COUNT(*), SUM(amount), COUNT(DISTINCT customer_id) FROM orders GROUP BY placed"
)
SOME = (
    "SELECT placed, COUNT(*) FILTER (WHERE amount > 250), AVG(amount) FROM orders GROUP BY placed"
)
PAIRS = "SELECT placed, channel, COUNT(*), SUM(amount) FROM orders GROUP BY placed, channel"
HIDDEN = (
    "SELECT city, placed, COUNT(*) FROM customers JOIN orders USING (customer_id) GROUP BY 1, 2"
)
VALUES = "SELECT placed, MEDIAN(amount), COUNT(*) FROM orders GROUP BY placed"
FAR = (
    "SELECT city, placed, MEDIAN(amount), COUNT(*) FROM customers JOIN orders USING (customer_id)"
    " WHERE amount > 10 GROUP BY 1, 2"
)
HOURS = "SELECT EXTRACT(HOUR FROM started), COUNT(*), SUM(seconds) FROM visits GROUP BY 1"
SUMS = "SELECT placed, SUM(amount) FROM orders GROUP BY placed"
FEW = "SELECT channel, COUNT(*) FROM orders GROUP BY channel"
LOOSE = World(
    SHOP.policy, SHOP.data,
    lambda text: re.sub(r"max_rows_per_unit: \d+", "max_rows_per_unit: 1000", SHOP.change(text)),
)  # fmt: skip
"""Where a unit may have more groups than any limit here."""
LIMITS = (1, 2, 5, 20, PLACES - 1, PLACES, 200)


def _part(sql: str, bounding: Bounding, world: World = LOOSE) -> PricedMeasurement:
    plan = plan_of(sql, world)
    (share, *_) = price._shares(plan, request(3, 1))
    return forced(plan.measurements[0], bounding, share)


def _ways(limit: int) -> Iterator[Bounding]:
    yield GroupCaps(groups=limit, limit=True, per_group=3)
    yield WeightsAndGroups(rows=max(limit, 7), groups=limit, limit=True)


@functools.cache
def _data() -> duckdb.DuckDBPyConnection:
    return in_memory("dirty")


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("sql", [DAYS, SOME, PAIRS, HIDDEN, VALUES, FAR, HOURS])
def test_the_first_groups_are_those_of_an_order_of_all(
    sql: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = [_part(sql, bounding) for bounding in _ways(limit)]
    leave_out(monkeypatch, rank_prefilter)
    whole = [_part(sql, bounding) for bounding in _ways(limit)]
    for one, other in zip(split, whole, strict=True):
        assert ("ANTI JOIN" in text_of(one), "ANTI JOIN" in text_of(other)) == (True, False)
    for one, other in zip(exact(_data(), split), exact(_data(), whole), strict=True):
        assert _plain(one) == _plain(other)


def _plain(found: Exact) -> dict[object, list[object]]:
    """Bins are in no particular order."""
    return {
        key: [sorted(map(repr, v)) if isinstance(v, list) else v for v in values]
        for key, values in found.items()
    }


def test_rows_are_marked_only_where_a_unit_may_have_many_groups_more() -> None:
    def marked(sql: str, limit: int) -> bool:
        part = _part(sql, GroupCaps(groups=limit, limit=True, per_group=3))
        assert "ANTI JOIN" in text_of(part)
        return "bit_or" in text_of(part)

    assert marked(DAYS, 2)
    assert marked(DAYS, PLACES - 1)
    assert not marked(DAYS, PLACES), "every part would be among the first"
    assert marked(HIDDEN, 20), "any number of groups, where it is not public"
    assert not marked(FEW, 2), "four groups"


def test_units_are_not_handled_apart_where_that_would_be_wrong_or_seen() -> None:
    limited = GroupCaps(groups=3, limit=True, per_group=3)
    shaky = (
        "SELECT r, COUNT(*) FROM (SELECT customer_id, ROW_NUMBER() OVER (PARTITION BY customer_id"
        " ORDER BY amount) AS r FROM orders) AS s GROUP BY r"
    )
    strict = World(LOOSE.policy, LOOSE.data, lambda t: LOOSE.change(t) + "\nstrict_timing: on\n")
    assert "ANTI JOIN" in text_of(_part(DAYS, limited))
    for part in (
        _part(shaky, limited),
        _part(DAYS, limited, strict),
        _part(DAYS, WeightsAndGroups(rows=2, groups=3, limit=True)),
        _part(SUMS, WeightsAndGroups(rows=9, groups=3, limit=True, valued=True)),
    ):
        assert "ANTI JOIN" not in text_of(part)
        assert "place <= 3" in text_of(part)
    declared = _part(DAYS, GroupCaps(groups=50, limit=True, per_group=3), SHOP)
    assert "bit_or" not in text_of(declared), "no unit may have more than 50 rows"


@pytest.mark.parametrize("groups", [1, 2, 20, 50, PLACES - 1])
def test_so_many_marked_parts_are_within_reach(groups: int) -> None:
    """Up to the part that is found there are enough marks; the part is no later than it must be."""
    text, tried = term(_reach(groups), Scope()), 0
    with duckdb.connect() as connection:
        for seed in range(200):
            step = 1 + seed % 7
            marks = {(seed * 37 + i * step * (1 + seed % 3)) % PLACES for i in range(seed % 70)}
            number = sum(1 << m for m in marks)
            (reach,) = connection.execute(
                f"SELECT {text} FROM (SELECT {number}::HUGEINT AS marks) AS m"
            ).fetchone() or (None,)
            enough = sorted(marks)[groups - 1] if len(marks) >= groups else PLACES - 1
            assert enough <= reach < PLACES
            assert reach <= max(groups - 1, 1.2 * (enough + 1)) or reach == PLACES - 1
            tried += len(marks) >= groups
    assert tried or groups > 50
