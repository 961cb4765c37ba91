"""Each way to bound a unit keeps its claim, and the law notices when a stage is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import duckdb
import pytest
from support.corpus import SHOP, World
from support.datasets import in_memory
from support.measured import broken, exact, forced, plan_of, removed, request, text_of, way

from dpsql.bound import (
    Bounding,
    GroupCaps,
    NormClip,
    OneRow,
    RowWeights,
    UnitTotals,
    VectorClip,
    WeightsAndGroups,
    rows,
    vector_clip,
)
from dpsql.bound import grid as grids
from dpsql.price import price
from dpsql.price.priced import PricedMeasurement

ORDERS = "SELECT channel, COUNT(*), SUM(amount), AVG(amount), COUNT(*) FILTER (WHERE amount > 250) FROM orders GROUP BY channel"
SHIFTED = (
    "SELECT placed, SUM(amount - 2000), SUM(amount + 2000), COUNT(*) FROM orders GROUP BY placed"
)
TOTALS = "SELECT COUNT(*), SUM(seconds - 5000), STDDEV(seconds) FROM visits"
DEVIATION = "SELECT page, SUM(seconds - 1800), COUNT(*) FILTER (WHERE seconds > 600) FROM visits GROUP BY page"
UNITS = "SELECT placed, COUNT(DISTINCT customer_id), COUNT(*) FROM orders GROUP BY placed"
HIDDEN = (
    "SELECT city || channel, COUNT(*), SUM(age)"
    " FROM customers JOIN orders USING (customer_id) GROUP BY 1"
)
HOME = (
    "SELECT city, COUNT(*), SUM(age), COUNT(DISTINCT customer_id)"
    " FROM customers JOIN orders USING (customer_id) GROUP BY city"
)
"""A unit has one city, by declaration; with ``MOVED``, some have several."""
MOVED = (
    "INSERT INTO customers SELECT customer_id, email, country, age, 'city ' || n FROM customers,"
    " range(3) AS r(n) WHERE customer_id < 200"
)
CAPPED = (
    "SELECT channel, SUM(amount - 250, contribution_bounds_per_group => (-90, -30)),"
    " COUNT(*, contribution_bounds_per_group => (2, 3)),"
    " AVG(amount, contribution_bounds_per_group => (40, 200)) FROM orders GROUP BY channel"
)
DEAR = (
    "SELECT channel, COUNT(*), SUM(amount - 250), COUNT(*) FILTER (WHERE age > 40) FROM customers"
    " JOIN orders USING (customer_id) WHERE amount > 1 GROUP BY channel"
)
"""Joined and filtered: written down before they are read."""
DAYS = "SELECT placed, COUNT(*) FROM customers JOIN orders USING (customer_id) WHERE amount > 1 GROUP BY placed"

FORCED: dict[str, tuple[Bounding, tuple[str, ...]]] = {
    "row weights": (RowWeights(rows=7, groups=4), (ORDERS, SHIFTED, TOTALS, DEVIATION, DEAR)),
    "coarse row weights": (RowWeights(rows=7, groups=4, bits=2), (ORDERS, SHIFTED, TOTALS)),
    "unit totals": (UnitTotals(per_group=9), (TOTALS,)),
    "every group": (GroupCaps(groups=4, limit=False, per_group=9), (CAPPED,)),
    "group caps": (
        GroupCaps(groups=2, limit=True, per_group=3),
        (ORDERS, SHIFTED, DEVIATION, UNITS, HIDDEN, CAPPED),
    ),
    "one group": (
        GroupCaps(groups=1, limit=True, per_group=1),
        (ORDERS, SHIFTED, UNITS, HIDDEN, HOME),
    ),
    "weights and groups": (
        WeightsAndGroups(rows=7, groups=3, limit=True),
        (ORDERS, SHIFTED, UNITS, HIDDEN, HOME, CAPPED),
    ),
    "as many groups as rows": (
        GroupCaps(groups=50, limit=True, per_group=1), (UNITS, SHIFTED, DAYS),
    ),
    "weights, and as many groups as rows": (
        WeightsAndGroups(rows=7, groups=50, limit=True), (UNITS, SHIFTED, DAYS, DEAR),
    ),
    "norm clip": (
        NormClip(groups=800, norm=Fraction(5, 2)),
        (ORDERS, SHIFTED, DEVIATION),
    ),
    "coarse norm clip": (
        NormClip(groups=800, norm=Fraction(29, 10), bits=3),
        (ORDERS, SHIFTED),
    ),
}  # fmt: skip
SUMS = "SELECT channel, SUM(amount - 200), SUM(amount) FILTER (WHERE amount > 250) FROM orders GROUP BY channel"
FEW_SUMS = "SELECT page, SUM(seconds - 1800), COUNT(DISTINCT customer_id) FROM visits GROUP BY page"
HIDDEN_SUMS = "SELECT city, SUM(age) FROM customers JOIN orders USING (customer_id) GROUP BY city"
FORCED |= {
    "value weights": (
        RowWeights(rows=Fraction(7, 4), groups=4, valued=True), (SUMS,),
    ),
    "weights of small values": (
        RowWeights(rows=Fraction(1, 64), groups=4, valued=True), (SUMS,),
    ),
    "value weights and groups": (
        WeightsAndGroups(rows=Fraction(7, 4), groups=2, limit=True, valued=True),
        (SUMS, FEW_SUMS, HIDDEN_SUMS),
    ),
}  # fmt: skip
WHOLE_VECTORS = (ORDERS, SHIFTED, UNITS, SUMS, FEW_SUMS, DAYS, TOTALS)
FORCED |= {
    "vector clip": (
        VectorClip(800, 1, Fraction(2), Fraction(7), Fraction(7, 4)), WHOLE_VECTORS,
    ),
    "vector clip in the Euclidean norm": (
        VectorClip(800, 2, Fraction(5, 2), Fraction(33, 2), Fraction(9, 7)), WHOLE_VECTORS,
    ),
    "vector clip of small values": (
        VectorClip(800, 2, Fraction(1), Fraction(1), Fraction(1, 1 << 14)), (SUMS, SHIFTED),
    ),
    "coarse vector clip": (
        VectorClip(800, 2, Fraction(3, 2), Fraction(3), Fraction(2), bits=3), WHOLE_VECTORS,
    ),
    "coarse vector clip of numbers": (
        VectorClip(800, 1, Fraction(3, 2), Fraction(3), Fraction(2), bits=0), WHOLE_VECTORS,
    ),
}  # fmt: skip
UNITS_OF_DATA = (101, 102, 103, 104, 105, 106, 107, 900, 901, 7, 31)


def _parts(sql: str, bounding: Bounding, world: World = SHOP) -> list[PricedMeasurement]:
    wanted = request(3, bounding.size)
    plan = plan_of(sql, world)
    return [
        forced(measurement, bounding, share)
        for share in price._shares(plan, wanted)
        for measurement in plan.measurements
    ]


def _deleted(units: tuple[int, ...]) -> tuple[str, ...]:
    names = ", ".join(map(str, units))
    tables = ("customers", "orders", "visits")
    return tuple(f"DELETE FROM {t} WHERE customer_id IN ({names})" for t in tables)


def breaches(
    parts: list[PricedMeasurement], units: tuple[int, ...] = UNITS_OF_DATA, together: int = 1
) -> list[str]:
    connection: duckdb.DuckDBPyConnection = in_memory("dirty")
    connection.execute(MOVED)
    before = exact(connection, parts)
    found = []
    for start in range(0, len(units), together):
        after = removed(connection, _deleted(units[start : start + together]), parts)
        for part, one, other in zip(parts, before, after, strict=True):
            found += list(broken(part, one, other))
    return found


CASES = [(name, sql) for name, (_, queries) in FORCED.items() for sql in queries]


@pytest.mark.parametrize("sql", [SUMS, SHIFTED])
def test_lengths_in_coarse_steps_keep_the_claim(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are rounded up, so that no vector is taken for a shorter one."""
    monkeypatch.setattr(vector_clip, "LENGTH_BITS", 8)
    bounding = FORCED["vector clip in the Euclidean norm"][0]
    parts = _parts(sql, bounding)
    assert any(" // " in text_of(part) for part in parts)
    assert breaches(parts) == []


@pytest.mark.parametrize(("name", "sql"), CASES)
@pytest.mark.parametrize("size", [1, 2])
def test_every_bounding_keeps_its_claim(name: str, sql: str, size: int) -> None:
    bounding = replace(FORCED[name][0], size=size)
    assert breaches(_parts(sql, bounding), together=size) == []


def _swap(pattern: str, new: str) -> Callable[[str], str]:
    def change(sql: str) -> str:
        changed = re.sub(pattern, new, sql)
        assert changed != sql, "the fault must change something"
        return changed

    return change


FAULTS: dict[str, tuple[str, str, Callable[[str], str]]] = {
    "a forgotten cap on counts": ("group caps", ORDERS, _swap(r"least\(s0, 3\)", "s0")),
    "a forgotten cap on totals": (
        "group caps", ORDERS, _swap(r"least\(greatest\((s\d), -?\d+\), \d+\)", r"\1"),
    ),
    "a forgotten cap of a sum": (
        "every group", CAPPED, _swap(r"least\(greatest\(s0, -\d+\), -\d+\)", "s0"),
    ),
    "a forgotten cap of a number": (
        "every group", CAPPED, _swap(r"least\(greatest\(s1, 2\), 3\)", "s1"),
    ),
    "a forgotten cap of a mean": (
        "every group", CAPPED, _swap(r"least\(greatest\(s2, -\d+\), \d+\)", "s2"),
    ),
    "a limit off by one": ("group caps", ORDERS, _swap(r"place <= 2", "place <= 3")),
    "no limit": ("one group", UNITS, _swap(r" WHERE place <= 1", "")),
    "no limit on cities": ("one group", HOME, _swap(r" WHERE place <= 1", "")),
    "units with two cities not found": (
        "one group", HOME, _swap(r"HAVING count\(\*\) > 1", "HAVING count(*) > 100"),
    ),
    "units with two cities not left out": (
        "one group", HOME, _swap(r"ANTI JOIN .units with many. AS m USING \(u0\)", ""),
    ),
    "units above the limit among the few": (
        "one group", UNITS, _swap(r"HAVING count\(\*\) > 1\) AS m", "HAVING count(*) > 1000) AS m"),
    ),
    "units above the limit on both sides": (
        "weights and groups", HIDDEN, _swap(r"ANTI JOIN", "SEMI JOIN"),
    ),
    "groups chosen by all units": (
        "one group", UNITS, _swap(r"PARTITION BY u0 ORDER BY hash\(.*?\$salt\)", "ORDER BY hash(u0 > 0, $salt), u0 DESC"),
    ),
    "weights away from zero": (
        "coarse row weights", DEVIATION, _swap(r"\(v0 \* weight\) // (\d+)", r"((v0 * weight) // \1 + sign(v0)::BIGINT * 4000)"),
    ),
    "weights rounded up": (
        "coarse row weights", TOTALS, _swap(r"// count\(\*\) AS weight", "// count(*) + 1 AS weight"),
    ),
    "heavy units not found": ("row weights", ORDERS, _swap(r"HAVING count\(\*\) > 7", "HAVING count(*) > 7000")),
    "weights of groups not told": (
        "weights and groups", HIDDEN, _swap(r"count\(\*\) \* min\(weight\)", r"count(*) * 1048576"),
    ),
    "weights from fewer rows": (
        "row weights", ORDERS, _swap(r"(AS weight FROM \"rows of units\" AS r)", r"\1 WHERE f0"),
    ),
    "heavy units not found among written rows": ("row weights", DEAR, _swap(r"HAVING count\(\*\) > 7", "HAVING count(*) > 7000")),
    "weights from fewer written rows": ("row weights", DEAR, _swap(r"(AS weight FROM \"rows of units\" AS r)", r"\1 WHERE f0")),
    "units with many groups not found": ("as many groups as rows", UNITS, _swap(r"HAVING count\(\*\) > 50", "HAVING count(*) > 5000")),
    "units with many groups not left out": ("as many groups as rows", UNITS, _swap(r"ANTI JOIN .units with many. AS m USING \(u0\)", "")),
    "many groups and no limit": ("as many groups as rows", DAYS, _swap(r" WHERE place <= 50", "")),
    "norm of totals not scaled": ("norm clip", ORDERS, _swap(r"\(s1 \* factor\) // \d+", "s1")),
    "norm across all units": ("norm clip", SHIFTED, _swap(r"CASE WHEN sum.*? THEN (\d+) ELSE", r"CASE WHEN TRUE THEN \1 ELSE")),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_stage_is_noticed(fault: str) -> None:
    name, sql, change = FAULTS[fault]
    parts = _parts(sql, FORCED[name][0])
    assert breaches([replace(way(part), sql=change(text_of(part))) for part in parts])


def test_a_reach_that_forgets_negative_bounds_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids.Grid, "reach", property(lambda g: max(abs(g.high - g.centre), 1)))
    assert breaches(_parts("SELECT SUM(amount - 2000) FROM orders", UnitTotals(per_group=9)))


def test_a_forgotten_centre_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = rows.steps_of
    monkeypatch.setattr(rows, "steps_of", lambda total, at: real(total, replace(at, centre=0)))
    assert breaches(_parts("SELECT AVG(age) FROM customers", OneRow()), (101, 7))


def test_a_skipped_clamp_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = rows.steps_of
    monkeypatch.setattr(
        rows, "steps_of", lambda total, at: replace(real(total, at), least=-99999999, most=99999999)
    )
    assert breaches(_parts("SELECT SUM(seconds) FROM visits", RowWeights(rows=7, groups=1)))


def test_a_forgotten_group_size_is_noticed() -> None:
    parts = _parts(UNITS, GroupCaps(groups=2, limit=True, per_group=3))
    assert breaches(parts, (101, 106, 104, 7), together=4)


@pytest.mark.parametrize("value", [-(2**43), -7, -1, 0, 1, 7, 2**43])
@pytest.mark.parametrize("bits", [1, 5, 20])
def test_integer_division_of_the_engine_truncates_toward_zero(value: int, bits: int) -> None:
    weight = (3 << bits) // 7
    weighed = f"SELECT ({value}::BIGINT * {weight}) // {1 << bits}, ({value}::HUGEINT * {weight}) // {1 << bits}"
    expected = abs(value) * weight // (1 << bits) * (1 if value >= 0 else -1)
    assert duckdb.sql(weighed).fetchall() == [(expected, expected)]
