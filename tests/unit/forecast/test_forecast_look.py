"""Exact figures: what limits and ranges cut is what was put into the data, and nothing is charged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from support.forecasts import EACH, GREEDY, POLICY, RIDERS, changed, opened, write_rides

from dpsql.diagnostics.refusal import EngineFailed
from dpsql.engines.duckdb.exact_limits import ExactLimits, read_exact_limits
from dpsql.forecast import look
from dpsql.forecast.look import ExactColumn, ExactFigures, Look, without_noise
from dpsql.forecast.planner import Planner
from dpsql.forecast.questions import Question
from dpsql.forecast.report import Forecast, Forecaster
from dpsql.policy.load import load

LIMIT = 10
TRUE = RIDERS * EACH + GREEDY
World = tuple[Planner, Forecaster]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with opened(write_rides(tmp_path_factory.mktemp("rides")), look=True) as found:
        yield found


def looked(world: World, sql: str) -> tuple[Forecast, ExactFigures]:
    planner, forecaster = world
    found = forecaster.forecast(planner.policy, Question(sql))
    assert found.figures is not None
    return found, found.figures


def only(figures: ExactFigures) -> ExactColumn:
    [column] = figures.columns
    return column


def test_limits_that_cut_nothing_are_read_from_the_data(tmp_path: Path) -> None:
    policy = load(write_rides(tmp_path))
    found = read_exact_limits(policy.source.path, policy)
    assert found.rows == {"rides": GREEDY}
    assert found.ranges["rides", "minutes"] == (0, 300)
    assert found.ranges["rides", "day"] == policy.tables["rides"].columns["day"].range
    # a table with no row keeps its declared ranges
    empty = replace(policy.tables["rides"], name="none")
    other = replace(policy, tables={"none": empty})
    with duckdb.connect(str(policy.source.path)) as connection:
        connection.execute("CREATE TABLE none AS SELECT * FROM rides LIMIT 0")
    nothing = read_exact_limits(policy.source.path, other)
    assert nothing == ExactLimits(
        {"none": 1},
        {("none", name): ends for (_, name), ends in found.ranges.items() if name == "day"}
        | {("none", "minutes"): (0, 100)},
    )


def test_limits_are_found_along_foreign_keys_and_rows_are_units_of_one(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "rides.duckdb")) as connection:
        connection.execute("CREATE TABLE riders AS SELECT i AS rider FROM range(3) AS r(i)")
        connection.execute(
            "CREATE TABLE rides AS SELECT i AS ride, i % 2 AS rider FROM range(7) AS r(i)"
        )
        connection.execute("CREATE TABLE stops AS SELECT i % 7 AS ride, inf AS v FROM range(21) AS r(i),"
                           " (SELECT 'infinity'::DOUBLE AS inf)")  # fmt: skip
        connection.execute("INSERT INTO stops VALUES (0, 2.5), (0, -7)")
    text = """
source: {engine: duckdb, path: rides.duckdb}
data_version: "1"
units: {rider: {table: riders, key: rider}, stop: {table: lone, key: row}}
tables:
  riders: {unit: rider, columns: {rider: {type: bigint}}}
  rides:
    unit: rider
    key: ride
    foreign_keys: [{columns: rider, references: riders}]
    max_rows_per_unit: 5
    columns: {ride: {type: bigint}, rider: {type: bigint}}
  stops:
    unit: rider
    foreign_keys: [{columns: ride, references: rides}]
    max_rows_per_unit: 5
    columns: {ride: {type: bigint}, v: {type: double, range: [0, 1]}}
  lone: {unit: stop, columns: {v: {type: bigint}}}
accounts: {dataset: {epsilon: 1}}
roles: {analyst: {}}
"""
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    policy = load(path)
    found = read_exact_limits(policy.source.path, policy)
    assert found.rows == {"riders": 1, "rides": 4, "stops": 14, "lone": 1}
    assert found.ranges == {("stops", "v"): (Fraction(-7), Fraction(5, 2))}


def test_rows_beyond_the_limit_are_cut(world: World) -> None:
    found, figures = looked(world, "SELECT COUNT(*) AS n FROM rides")
    column = only(figures)
    cut = (GREEDY - LIMIT) / TRUE
    assert (figures.shown, figures.groups, column.typical) == (1, 1, TRUE)
    assert column.cut == pytest.approx(cut, abs=1 / TRUE)
    assert column.rows == pytest.approx(cut, abs=1 / TRUE)
    assert (column.groups, column.values) == (0, 0)
    assert found.prediction is not None
    width = found.prediction.columns[0].width(1)
    assert column.noise == pytest.approx(width / TRUE)


def test_values_beyond_the_range_are_cut(world: World) -> None:
    """The greedy rider alone has values beyond the range; with all rows, 200 of each are cut."""
    _, figures = looked(world, "SELECT SUM(minutes) AS total FROM rides")
    column = only(figures)
    assert column.typical is not None
    assert column.values == pytest.approx(GREEDY * 200 / column.typical, rel=1e-6)
    assert column.cut == pytest.approx((column.rows or 0) + (column.values or 0), rel=1e-6)


def test_groups_beyond_the_limit_are_cut(tmp_path: Path) -> None:
    """Each rider rides in two groups, and one of them counts."""
    rows = "UPDATE rides SET line = 'line ' || (minutes + rider) % 2"
    path = write_rides(
        tmp_path, greedy=False, policy=POLICY.replace("_per_unit: 4", "_per_unit: 1")
    )
    with duckdb.connect(str(tmp_path / "rides.duckdb")) as connection:
        connection.execute("UPDATE rides SET kind = 'bus' WHERE rider % 2 = 0")
        connection.execute(rows)
    with opened(path, look=True) as (planner, forecaster):
        sql = (
            "SELECT EXTRACT(month FROM day) AS m, COUNT(DISTINCT rider) AS n FROM rides GROUP BY m"
        )
        several = forecaster.forecast(planner.policy, Question(sql)).figures
        assert several is not None
        assert several.groups >= 4
        free = planner.service(planner.policy).policy.roles["analyst"]
        many = replace(planner.policy, roles={"analyst": replace(free, max_groups_per_unit=12)})
        whole = forecaster.forecast(many, Question(sql)).figures
        assert whole is not None
        assert only(whole).groups == pytest.approx(0, abs=1e-9)
        assert only(whole).cut == 0


def test_groups_of_few_units_are_missing(world: World) -> None:
    found, figures = looked(world, "SELECT line, COUNT(*) AS n FROM rides GROUP BY line")
    assert found.prediction is not None
    assert found.prediction.threshold is not None
    assert (figures.shown, figures.groups) == (5, 6)


def test_a_chosen_value_has_no_noise_in_its_own_units(world: World) -> None:
    _, figures = looked(world, "SELECT MEDIAN(minutes) AS m, MAX(kind) AS k FROM rides")
    middle, word = figures.columns
    assert middle.noise is None
    assert middle.typical is not None
    assert 70 <= middle.typical <= 80
    assert word == ExactColumn(1)


def test_groups_of_nobody_have_no_figures(tmp_path: Path) -> None:
    """A mean over nobody is no value that a wider range would move."""
    text = POLICY.replace("values: [bike,", "values: [tram, bike,")
    with opened(write_rides(tmp_path, policy=text), look=True) as (planner, forecaster):
        sql = "SELECT kind, AVG(minutes) AS mean FROM rides GROUP BY kind"
        figures = forecaster.forecast(planner.policy, Question(sql)).figures
    assert figures is not None
    assert (figures.shown, figures.groups) == (4, 4)
    assert only(figures).typical == pytest.approx(75, abs=1)
    mean = (
        GREEDY * 200 / (0.7 * RIDERS * EACH + GREEDY)
    )  # what the range takes from the mean of bikes
    assert only(figures).values == pytest.approx(mean / (3 * 75 + mean), rel=0.05)


def test_values_above_groups_have_figures_too(world: World) -> None:
    _, figures = looked(
        world, "SELECT AVG(n) AS a FROM (SELECT kind, COUNT(*) AS n FROM rides GROUP BY kind)"
    )
    column = only(figures)
    assert column.noise is None
    assert column.typical == pytest.approx(TRUE / 3)


def test_a_searched_bound_cuts_too(world: World) -> None:
    planner, forecaster = world
    session = planner.service(planner.policy).session()
    session.execute("SET dpsql.search = on")
    sql = "SELECT COUNT(*) AS n FROM rides"
    forecast = forecaster.forecast(planner.policy, Question(sql))
    assert forecast.prediction is not None
    limits = ExactLimits({"rides": GREEDY}, {})
    figures = Look(planner, "analyst", limits).figures(
        session, planner.policy, sql, forecast.prediction
    )
    assert figures is not None
    assert only(figures).noise is not None
    assert only(figures).cut is not None


def test_what_cannot_be_counted_without_limits_has_no_figures(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner, _ = world
    count = Question("SELECT COUNT(*) AS n FROM rides")
    pairs = Question("SELECT COUNT(*) AS n FROM rides AS a JOIN rides AS b USING (rider)")
    found = []
    for rows in (GREEDY, 10**5):
        forecaster = Forecaster(
            planner, "analyst", look=Look(planner, "analyst", ExactLimits({"rides": rows}, {}))
        )
        found.append(forecaster.forecast(planner.policy, pairs).figures)
    assert found[0] is not None
    assert found[1] is None  # refused: one unit might have 10**10 rows
    fresh = Forecaster(
        planner, "analyst", look=Look(planner, "analyst", ExactLimits({"rides": 100}, {}))
    )

    def fail(*_: object) -> None:
        raise EngineFailed("1")

    monkeypatch.setattr(look, "with_found_bounds", fail)
    monkeypatch.setattr(look, "admit_part", fail)
    assert fresh.forecast(planner.policy, count).figures is None


def test_an_engine_that_fails_later_gives_no_figures(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner, forecaster = world
    original = Look._release

    def fails_if_real(self: Look, *given: object, real: bool) -> object:
        if real:
            raise EngineFailed("1")
        return original(self, *given, real=real)  # type: ignore[arg-type]

    monkeypatch.setattr(Look, "_release", fails_if_real)
    found = forecaster.forecast(planner.policy, Question("SELECT COUNT(*) AS n FROM rides"))
    assert found.figures is None


def test_figures_do_not_depend_on_the_price(world: World) -> None:
    """Noise is not drawn: two looks have the same figures, and they are exact."""
    planner, forecaster = world
    questions = ("SELECT SUM(minutes) AS s FROM rides", "SELECT STDDEV(minutes) AS s FROM rides")
    for sql in questions:
        assert looked(world, sql)[1] == looked(world, sql)[1]
    lower = changed(planner.policy, "rides", max_rows_per_unit=2)
    few = forecaster.forecast(lower, Question("SELECT COUNT(*) AS n FROM rides")).figures
    assert few is not None
    assert only(few).cut == pytest.approx((GREEDY - 2) / TRUE, abs=1 / TRUE)


def test_a_plan_without_noise_keeps_its_statement(world: World) -> None:
    planner, _ = world
    session = planner.service(planner.policy).session()
    priced = session.prepare("SELECT line, COUNT(*) AS n FROM rides GROUP BY line")
    [part] = priced.parts
    for whole in (True, False):
        silent = without_noise(part, whole=whole)
        assert (silent.measurement, silent.bounding) == (part.measurement, part.bounding)
        assert silent.selection is not None
        assert part.selection is not None
        assert silent.selection.threshold == (1 if whole else part.selection.threshold)


def test_nothing_is_written_beside_the_policy(tmp_path: Path) -> None:
    path = write_rides(tmp_path)
    before = sorted(p.name for p in tmp_path.iterdir())
    with opened(path, look=True) as (planner, forecaster):
        forecaster.forecast(planner.policy, Question("SELECT COUNT(*) AS n FROM rides"))
    after = {p.name for p in tmp_path.iterdir()} - {"rides.duckdb.tmp"}
    assert sorted(after) == before
