"""Predicted noise: of counts and sums, of means in groups of many sizes, of ranks, and of what is not known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.forecasts import POLICY, opened, write_rides

from dpsql.forecast.planner import PATIENCE, Planner
from dpsql.forecast.predict import SIZES, PredictedColumn, Prediction, predict
from dpsql.forecast.questions import Question
from dpsql.policy.load import load
from dpsql.price.priced import PricedPlan


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planner]:
    with opened(write_rides(tmp_path_factory.mktemp("rides"))) as (found, _):
        yield found


def planned(planner: Planner, sql: str, *, search: bool = False) -> tuple[PricedPlan, Prediction]:
    service = planner.service(planner.policy)
    session = service.session()
    session.settings = replace(session.settings, show="always")
    if search:
        session.execute("SET dpsql.search = on")
    priced = session.prepare(sql, suggest=False)
    with session.execution():
        return priced, predict(priced, service.tools.finishing)


def columns(planner: Planner, sql: str) -> dict[str, PredictedColumn]:
    return {column.name: column for column in planned(planner, sql)[1].columns}


def test_counts_and_sums_have_the_noise_that_explain_shows(planner: Planner) -> None:
    for sql in ("SELECT COUNT(*) AS n FROM rides", "SELECT SUM(minutes) AS n FROM rides"):
        priced, found = planned(planner, sql)
        [item] = priced.parts[0].noised
        [column] = found.columns
        assert column.even
        assert column.width(7) == column.width(10**9) == pytest.approx(item.half_width)
        assert (column.position, column.name, column.errs) == (0, "n", "value")
        assert found.cost == priced.price


def test_a_count_is_small_beside_its_noise_up_to_a_size(planner: Planner) -> None:
    column = columns(planner, "SELECT kind, COUNT(*) AS n FROM rides GROUP BY kind")["n"]
    assert column.position == 1
    needed = column.rows_for(0.05)
    assert needed is not None
    assert column.width(1) / 0.05 <= needed <= column.width(1) / 0.05 * 1.1 + 1
    assert column.share(1000) == pytest.approx(column.width(1000) / 1000)
    halved = column.rows_for(0.025)
    assert halved is not None
    assert halved == pytest.approx(2 * needed, rel=0.1)


def test_a_sum_is_of_values_at_three_quarters_of_the_range(planner: Planner) -> None:
    column = columns(planner, "SELECT SUM(minutes) AS total FROM rides")["total"]
    assert column.share(1000) == pytest.approx(column.width(1) / (1000 * 75), rel=1e-6)


def test_a_mean_errs_less_in_a_larger_group(planner: Planner) -> None:
    column = columns(planner, "SELECT kind, AVG(minutes) AS mean FROM rides GROUP BY kind")["mean"]
    assert not column.even
    assert column.width(10**5) == pytest.approx(column.width(10**4) / 10, rel=0.3)
    between = column.width(30_000)
    assert column.width(50_000) < between < column.width(20_000)


def test_nobody_waits_for_a_forecast(tmp_path: Path) -> None:
    """Limits on the time of an answer are for clients. A long look at the data is not stopped."""
    text = POLICY + "latency: fixed(1s)\n"
    with opened(write_rides(tmp_path, policy=text), look=True) as (planner, forecaster):
        policy = planner.service(planner.policy).policy
        assert load(policy.path).limits.timeout_seconds == 1
        assert (policy.limits.timeout_seconds, policy.latency) == (PATIENCE, None)
        found = forecaster.forecast(planner.policy, Question("SELECT COUNT(*) AS n FROM rides"))
    assert found.figures is not None


def test_ranks_err_in_rows(planner: Planner) -> None:
    column = columns(planner, "SELECT MEDIAN(minutes) AS middle FROM rides")["middle"]
    assert (column.errs, column.about) == ("rank", " rows of rank")
    assert max(column.shares) == 1
    needed = column.rows_for(0.05)
    assert needed is not None
    assert needed == pytest.approx(column.width(1) / 0.05, rel=0.1)


def test_values_above_groups_are_not_known_and_keys_are_exact(planner: Planner) -> None:
    found = columns(
        planner, "SELECT AVG(n) AS a FROM (SELECT kind, COUNT(*) AS n FROM rides GROUP BY kind)"
    )
    assert (found["a"].errs, found["a"].widths, found["a"].rows_for(0.05)) == ("unknown", (), None)
    assert columns(planner, "SELECT station FROM stations") == {}
    mixed = "SELECT kind, MEDIAN(minutes) + COUNT(*) AS odd FROM rides GROUP BY kind"
    assert columns(planner, mixed)["odd"].errs == "unknown"


def test_two_phases_and_thresholds_and_searches_are_said(planner: Planner) -> None:
    _, found = planned(planner, "SELECT line, COUNT(*) AS n FROM rides GROUP BY line")
    assert found.threshold is not None
    assert any(str(found.threshold) in note for note in found.notes)
    two = "SELECT COUNT(*) AS n FROM rides WHERE minutes > (SELECT AVG(minutes) FROM rides)"
    assert [column.name for column in planned(planner, two)[1].columns] == ["n"]
    count = "SELECT COUNT(*) AS n FROM rides"
    assert planned(planner, count, search=True)[1].searched
    assert not planned(planner, count)[1].searched or planned(planner, count)[0].searches


@pytest.mark.parametrize(
    ("shares", "wanted", "needed"),
    [
        (tuple(1.0 / size for size in SIZES), 0.05, 20),
        (tuple(1.0 / size for size in SIZES), 0.03, 34),
        ((0.0,) * len(SIZES), 0.05, 1),
        ((0.05,) * len(SIZES), 0.05, 1),
        ((0.06,) * len(SIZES), 0.05, None),
        ((math.inf, math.inf, *(0.01,) * (len(SIZES) - 2)), 0.05, SIZES[2]),
        ((), 0.05, None),
    ],
)
def test_the_rows_that_are_needed(
    shares: tuple[float, ...], wanted: float, needed: int | None
) -> None:
    assert PredictedColumn(0, "n", "value", shares, shares).rows_for(wanted) == needed
