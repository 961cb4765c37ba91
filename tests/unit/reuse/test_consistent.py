"""Levels of one answer add up where that is asked for, err less, and say by how much."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.services import Seeded, real_service, service

from dpsql.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.privacy.mechanisms.noise_sum import NoiseSum, NoiseTerm
from dpsql.release.rows import ColumnNoise
from dpsql.reuse import consistent
from dpsql.reuse.consistent import _Coarser, _Column, _settled
from dpsql.service import Session

Floats = npt.NDArray[np.float64]


def rich(text: str) -> str:
    """Enough for every level to have noise of some thousands, and to be measured apart."""
    old = "query: {epsilon: 0.1}"
    assert old in text
    return text.replace(old, "query: {epsilon: 0.4}")


@pytest.fixture
def session() -> Iterator[Session]:
    with real_service("shop", "shop", rich) as opened:
        made = opened.session("analyst")
        made.execute("SET dpsql.epsilon = 0.4")
        made.execute("SET dpsql.consistent = on")
        yield made


BY = "SELECT country, age, COUNT(*) AS n, SUM(age) AS s FROM customers GROUP BY"
LEVELS = (
    f"{BY} ROLLUP (country, age)",
    f"{BY} CUBE (country, age)",
    f"{BY} GROUPING SETS ((country, age), (age), ())",
)


def cells(session: Session, sql: str) -> dict[tuple[object, ...], tuple[float, ...]]:
    table = session.execute(sql).table
    assert {str(t) for t in table.schema.types[2:]} == {"int64"}
    return {tuple(row[:2]): tuple(row[2:]) for row in zip(*table.to_pydict().values(), strict=True)}


def gaps(found: dict[tuple[object, ...], tuple[float, ...]], i: int = 0) -> list[float]:
    """How far each coarser level is from the sum of the finest groups below it."""
    fine = {key: v for key, v in found.items() if None not in key}
    return [
        abs(values[i] - sum(v[i] for k, v in fine.items() if _below(k, key)))
        for key, values in found.items()
        if None in key
    ]


def _below(fine: tuple[object, ...], coarse: tuple[object, ...]) -> bool:
    return all(c in (None, f) for f, c in zip(fine, coarse, strict=True))


@pytest.mark.parametrize("sql", LEVELS)
def test_levels_add_up_to_the_last_digit_and_only_where_it_is_asked_for(
    session: Session, sql: str
) -> None:
    first = cells(session, sql)
    assert set(gaps(first)) == {0}
    most = sum(None not in key for key in first)
    assert max(gaps(first, 1)) <= most / 2, "sums are rounded once more, beside their counts"
    assert cells(session, sql) == first, "the stored numbers lead to the same ones"
    session.execute("SET dpsql.consistent = off")
    plain = cells(session, sql)
    if sql != LEVELS[2]:  # which has one total alone; it may be right by chance
        assert max(gaps(plain)) > 0
    session.execute("SET dpsql.consistent = on")
    assert cells(session, sql) == first
    assert session.execute(sql).recalled


def test_a_total_beside_its_groups_adds_up_too_and_knows_its_error(session: Session) -> None:
    sql = (
        "SELECT a.country, a.n, b.n, b.high - b.n FROM"
        " (SELECT country, COUNT(*) AS n FROM customers GROUP BY country) AS a CROSS JOIN"
        " (SELECT COUNT(*) AS n, DP_INTERVAL_HIGH(COUNT(*)) AS high FROM customers) AS b"
    )
    _, groups, totals, after = session.execute(sql).table.to_pydict().values()
    assert {sum(groups)} == set(totals)
    session.execute("SET dpsql.consistent = off")
    _, groups, totals, before = session.execute(sql).table.to_pydict().values()
    assert after[0] < before[0]


ALONE = (
    "SELECT country, COUNT(*) FROM customers GROUP BY country",
    "SELECT (SELECT COUNT(*) FROM customers), (SELECT COUNT(*) FROM orders)",
    "SELECT city, COUNT(*) FROM customers GROUP BY ROLLUP (city)",
    "SELECT country, age, COUNT(*) FROM customers GROUP BY GROUPING SETS ((country), (age))",
    "SELECT country, MEDIAN(age) FROM customers GROUP BY ROLLUP (country)",
    "SELECT country, COUNT(DISTINCT age) FROM customers GROUP BY ROLLUP (country)",
    "SELECT COUNT(*) FROM customers WHERE age > (SELECT AVG(age) FROM customers)",
)


@pytest.mark.parametrize("sql", ALONE)
def test_what_is_no_hierarchy_stays_as_it_is(session: Session, sql: str) -> None:
    with_setting = session.execute(sql).table
    session.execute("SET dpsql.consistent = off")
    assert session.execute(sql).table == with_setting


def test_what_was_added_up_from_stored_groups_is_left_alone(session: Session) -> None:
    """Its noise is that of the groups: to average both would count it twice."""
    rows = "FROM customers WHERE age BETWEEN 18 AND 100"
    fine = f"SELECT country, age, COUNT(*) AS n {rows} GROUP BY country, age"
    rolled = fine.replace("BY country, age", "BY GROUPING SETS ((country, age), (country), ())")
    session.execute("SET dpsql.epsilon = 0.05")
    session.execute(fine)
    session.execute(f"SELECT COUNT(*) {rows}")
    session.execute("SET dpsql.epsilon = 0.001")
    stored = session.execute(rolled)
    assert stored.recalled
    session.execute("SET dpsql.consistent = off")
    assert session.execute(rolled).table == stored.table


def test_exact_numbers_stay_exact() -> None:
    exact = service("shop", "shop", lambda text: rich(text).replace("0.4}", "1e9}").replace(
        "session: {epsilon: 1}", "session: {epsilon: 1e9}"
    ).replace("epsilon: 5\n", "epsilon: 1e9\n").replace("{epsilon: 20,", "{epsilon: 1e9,"))  # fmt: skip
    made = exact.session("analyst")
    made.execute("SET dpsql.epsilon = 1e8")
    plain = cells(made, LEVELS[1])
    made.execute("SET dpsql.consistent = on")
    assert cells(made, LEVELS[1]) == plain
    assert set(gaps(plain)) == {0}


# The numbers


def tree(scale: int, *, whole: bool = False) -> tuple[NoiseSum, list[NoiseSum], list[Any]]:
    """Twelve groups of two keys, 3 by 4, one of them left out of one level; laws and places."""
    fine = NoiseSum((NoiseTerm(DiscreteLaplace(Fraction(scale))),), whole)
    wide = NoiseSum((NoiseTerm(DiscreteGaussian(Fraction(4 * scale**2))),), whole)
    of = [np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3), np.zeros(12, np.int64)]
    of[1] = np.where(np.arange(12) == 7, -1, of[1])
    return fine, [wide, fine, wide], of


EXACT = np.arange(12.0) * 1000


def drawn(seed: int, scale: int, *, whole: bool = False) -> tuple[_Column, list[_Coarser]]:
    fine, laws, of = tree(scale, whole=whole)
    entropy = Seeded(seed)

    def column(exact: Floats, law: NoiseSum) -> _Column:
        return _Column(exact + law.sample(entropy, len(exact)), ColumnNoise((law,)), whole)

    coarser = []
    for law, places in zip(laws, of, strict=True):
        exact = np.bincount(places[places >= 0], EXACT[places >= 0])
        coarser.append(_Coarser(column(exact, law), places))
    return column(EXACT, fine), coarser


def by_hand(finest: _Column, levels: list[_Coarser]) -> Floats:
    """Weighted least squares by the book, over all numbers."""
    rows = [np.eye(12), *((e.of == np.arange(len(e.column.values))[:, None]) for e in levels)]
    a = np.vstack(rows).astype(float)
    y = np.concatenate([finest.values, *(e.column.values for e in levels)])
    variances = [finest.variances, *(e.column.variances for e in levels)]
    root = 1 / np.sqrt(np.concatenate(variances))
    return np.asarray(a @ np.linalg.lstsq(a * root[:, None], y * root, rcond=None)[0])


def test_it_is_least_squares() -> None:
    finest, levels = drawn(1, 50)
    found = np.concatenate([c.values for c in _settled(finest, levels)])
    assert found == pytest.approx(by_hand(finest, levels), rel=1e-9)


RUNS = 1500


def errors(whole: bool) -> tuple[Floats, Floats, Floats, Floats]:
    """Errors of all numbers, their predicted deviations and half widths, and those before."""
    off = []
    for seed in range(RUNS):
        finest, levels = drawn(seed, 50, whole=whole)
        found = _settled(finest, levels)
        assert found
        exact = np.concatenate([EXACT, *(e.sums(EXACT) for e in levels)])
        off.append(np.concatenate([c.values for c in found]) - exact)
    before = np.sqrt(np.concatenate([finest.variances, *(e.column.variances for e in levels)]))
    deviations = np.sqrt(np.concatenate([c.variances for c in found]))
    widths = np.concatenate([c.noise.half_widths(len(c.values)) for c in found])
    return np.array(off), deviations, widths, before


@pytest.mark.parametrize("whole", [False, True])
def test_every_number_errs_less_and_its_interval_covers(whole: bool) -> None:
    off, deviations, widths, before = errors(whole)
    seen = off.std(axis=0)
    assert np.abs(off.mean(axis=0)).max() < 5 * before.max() / RUNS**0.5
    assert seen == pytest.approx(deviations, rel=0.1)
    assert (deviations < before).all()
    assert (deviations[12:] < 0.95 * before[12:]).all()
    inside = (np.abs(off) <= widths).mean(axis=0)
    assert inside.min() > 0.93
    assert inside.max() < 0.975
    if whole:
        assert (off == np.rint(off)).all()


def _dependent(finest: _Column, levels: list[_Coarser]) -> list[_Coarser]:
    return [replace(e, column=replace(e.column, values=e.sums(finest.values))) for e in levels]


def test_levels_that_are_not_independent_would_be_noticed() -> None:
    """What ``summed`` keeps out: sums of the very numbers that they are averaged with."""
    off = []
    for seed in range(300):
        finest, levels = drawn(seed, 50)
        found = _settled(finest, _dependent(finest, levels))
        off.append(found[0].values - EXACT)
    deviations = np.sqrt(found[0].variances)
    assert (np.array(off).std(axis=0) > 1.1 * deviations).mean() > 0.9


def _no_gain(finest: _Column, levels: list[_Coarser]) -> tuple[_Column, list[_Coarser]]:
    small = NoiseSum((NoiseTerm(DiscreteLaplace(Fraction(1, 4))),), whole=True)
    return replace(finest, noise=ColumnNoise((small,))), levels


def _no_noise(finest: _Column, levels: list[_Coarser]) -> tuple[_Column, list[_Coarser]]:
    none = NoiseSum((NoiseTerm(DiscreteLaplace(Fraction(1, 10**9))),), whole=True)
    return replace(finest, noise=ColumnNoise((none,))), levels


def _huge(finest: _Column, levels: list[_Coarser]) -> tuple[_Column, list[_Coarser]]:
    return replace(finest, values=finest.values + 2.0**52), levels


def _a_group_of_nothing(finest: _Column, levels: list[_Coarser]) -> tuple[_Column, list[_Coarser]]:
    first = replace(levels[0], of=np.where(levels[0].of == 1, 0, levels[0].of))
    return finest, [first, *levels[1:]]


@pytest.mark.parametrize("change", [_no_gain, _no_noise, _huge, _a_group_of_nothing])
def test_where_nothing_is_gained_nothing_changes(
    change: Callable[..., tuple[_Column, list[_Coarser]]],
) -> None:
    finest, levels = drawn(1, 50, whole=True)
    assert _settled(finest, levels)
    assert _settled(*change(finest, levels)) == []


def test_too_many_totals_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    finest, levels = drawn(1, 50)
    assert _settled(finest, levels)
    monkeypatch.setattr(consistent, "MOST_TOTALS", 7)
    assert _settled(finest, levels) == []


def test_rows_that_differ_in_noise_count_by_it() -> None:
    finest, levels = drawn(3, 50)
    exact = NoiseSum((NoiseTerm(DiscreteLaplace(Fraction(1, 8))),))
    of_row = (np.arange(12) == 5).astype(np.int64)
    finest = replace(finest, noise=ColumnNoise((finest.noise.laws[0], exact), of_row))
    found = _settled(finest, levels)
    assert found[0].values == pytest.approx(by_hand(finest, levels)[:12], rel=1e-9)
    assert abs(found[0].values - finest.values)[5] < 0.01
    deviations = np.sqrt(found[0].variances)
    assert deviations[5] < 1 < min(np.delete(deviations, 5))
