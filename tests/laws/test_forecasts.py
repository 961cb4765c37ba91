"""Forecasts agree with the errors of answers, and without a look they do not depend on private rows.

Answers are asked for again and again, with seeded noise. A forecast agrees if about 19 of 20 of them
are within it, and not nearly all: one that is half as wide, or twice as wide, does not agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest
from support.forecasts import POLICY, opened, write_rides
from support.services import FreeLedger, Seeded, noon

from dpsql.cli import main
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.engines.verify import look_up
from dpsql.forecast import planner as planner_module
from dpsql.forecast import predict as predict_module
from dpsql.forecast.planner import Planner
from dpsql.forecast.predict import PredictedColumn
from dpsql.forecast.questions import Question
from dpsql.forecast.report import Forecaster
from dpsql.forecast.settings import Wanted, list_knobs
from dpsql.policy.load import load
from dpsql.policy.version import answers_key, version_of
from dpsql.release import intervals
from dpsql.service import Service

LEAST, MOST = 0.91, 0.985
"""The shares of answers within a width that holds 95 %; both are more than three deviations off."""
Errors = dict[object, list[float]]
QUESTIONS = {
    "SELECT 'all', COUNT(*) AS v FROM rides": 400,
    "SELECT 'all', SUM(minutes) AS v FROM rides": 400,
    "SELECT kind, COUNT(*) AS v FROM rides GROUP BY kind": 200,
    "SELECT kind, AVG(minutes) AS v FROM rides GROUP BY kind": 200,
    "SELECT 'all', COUNT(DISTINCT rider) AS v FROM rides": 400,
    "SELECT 'all', AVG(minutes) AS v FROM rides": 400,
}
"""Questions with one key and one value, and how often each is asked."""


@pytest.fixture(scope="module")
def rides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rides(tmp_path_factory.mktemp("rides"), greedy=False)


@contextmanager
def service(path: Path) -> Iterator[Service]:
    """A service that answers for free, with noise that is the same in each run of this test."""
    policy = load(path)
    policy = replace(policy, version=version_of(policy), answers_key=answers_key(policy))
    engine = DuckDB(policy.source.path, policy.limits)
    with Service(policy, engine, FreeLedger(), clock=noon, entropy=Seeded(17)) as found:
        yield found


def errors_of(path: Path, sql: str, times: int) -> tuple[Errors, dict[object, int]]:
    """The errors of answers to a question, by group, and the rows of each group."""
    with duckdb.connect(str(path.with_name("rides.duckdb")), read_only=True) as connection:
        true = dict(connection.execute(sql).fetchall())
        by = "kind" if "GROUP BY" in sql else "'all'"
        rows = dict(connection.execute(f"SELECT {by}, count(*) FROM rides GROUP BY 1").fetchall())
    errors: Errors = {key: [] for key in true}
    with service(path) as opened_service:
        session = opened_service.session()
        session.settings = replace(session.settings, fresh=True, show="always")
        for _ in range(times):
            table = session.execute(sql).table
            for key, value in zip(
                table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True
            ):
                errors[key].append(float(value) - float(true[key]))
    return errors, rows


def agrees(column: PredictedColumn, errors: Errors, rows: dict[object, int]) -> bool:
    """Whether the forecast holds about 19 of 20 answers, as it says."""
    inside = [
        abs(error) <= column.width(rows[key]) + 1e-9
        for key, found in errors.items()
        for error in found
    ]
    return LEAST <= float(np.mean(inside)) <= MOST


def forecast_of(planner: Planner, forecaster: Forecaster, sql: str) -> PredictedColumn:
    found = forecaster.forecast(planner.policy, Question(sql)).prediction
    assert found is not None
    [column] = found.columns
    return column


@pytest.fixture(scope="module")
def asked(rides: Path) -> dict[str, tuple[Errors, dict[object, int]]]:
    return {sql: errors_of(rides, sql, times) for sql, times in QUESTIONS.items()}


Asked = dict[str, tuple[Errors, dict[object, int]]]


@pytest.mark.slow
@pytest.mark.parametrize("sql", QUESTIONS)
def test_forecasts_agree_with_the_errors_of_answers(rides: Path, asked: Asked, sql: str) -> None:
    with opened(rides) as (planner, forecaster):
        assert agrees(forecast_of(planner, forecaster, sql), *asked[sql])


@pytest.mark.parametrize("factor", [Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_forecast_of_another_price_does_not_agree(
    rides: Path, asked: Asked, sql: str, factor: Fraction
) -> None:
    with opened(rides) as (planner, forecaster):
        [knob] = [
            knob
            for knob in list_knobs(planner.policy, "analyst", Wanted(epsilons=(factor,)))
            if knob.key == "query.epsilon"
        ]
        found = forecaster.forecast(knob.variants[0].policy, Question(sql)).prediction
        assert found is not None
        assert not agrees(found.columns[0], *asked[sql])


def _deviations(original: Callable[..., dict[int, float]]) -> Callable[..., dict[int, float]]:
    """A planted fault: half the width, as if it were the deviation."""
    return lambda *given: {i: width / 2 for i, width in original(*given).items()}


def test_wrong_forecasts_are_noticed(
    rides: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two planted faults: one of values with one noise, and one of values that are computed."""
    count, mean = list(QUESTIONS)[2:4]
    with opened(rides) as (planner, forecaster):
        monkeypatch.setattr(intervals, "widths", _deviations(intervals.widths))
        assert not agrees(forecast_of(planner, forecaster, count), *asked[count])
        monkeypatch.undo()
        monkeypatch.setattr(predict_module, "_each", lambda _: 4.0)  # groups of four times the rows
        assert not agrees(forecast_of(planner, forecaster, mean), *asked[mean])


@pytest.mark.parametrize("sql", list(QUESTIONS)[:2])
def test_what_is_cut_is_the_bias_of_answers(tmp_path: Path, sql: str) -> None:
    """Answers are off by what the look says is cut; a look that saw no cut is wrong."""
    path = write_rides(tmp_path)
    errors, rows = errors_of(path, sql, 200)
    [found] = errors.values()
    with opened(path, look=True) as (planner, forecaster):
        forecast = forecaster.forecast(planner.policy, Question(sql))
    assert forecast.figures is not None
    [column] = forecast.figures.columns
    assert column.typical is not None
    assert column.cut is not None
    assert sum(rows.values()) == 4_100
    bias, doubt = float(np.mean(found)), 4 * float(np.std(found)) / math.sqrt(len(found))
    assert abs(bias + column.cut * column.typical) <= doubt
    assert abs(bias) > doubt  # with no cut, the same bias would be noticed


def printed(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, ...]:
    """What ``dpsql forecast`` prints and draws."""
    target = path.with_name("forecast.svg")
    few = ("--rows", "5,10", "--groups", "2,4", "--share", "1%,2%", "--ranges", "1,2")
    given = (*few, "--plot", str(target), *arguments)
    assert main(["forecast", "--policy", str(path), *given]) == 0
    return *capsys.readouterr(), target.read_text(encoding="utf-8")


def test_without_a_look_neighbours_have_the_same_forecasts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same bytes with the greedy rider, without, and without anybody; a look tells them apart."""
    text = POLICY.replace("{epsilon: 1}", "{share: 1%}")
    places = [
        write_rides(tmp_path / "with", policy=text),
        write_rides(tmp_path / "without", greedy=False, policy=text),
        write_rides(tmp_path / "nobody", policy=text),
    ]
    with duckdb.connect(str(places[2].with_name("rides.duckdb"))) as connection:
        connection.execute("DELETE FROM rides")
    for form in ("table", "csv", "json"):
        first, *others = (printed(path, capsys, "--format", form) for path in places)
        assert "±" in first[0] or "width" in first[0]
        assert others == [first, first]
    worth = []
    for path in places:
        assert main(["check", str(path)]) == 0
        said = capsys.readouterr().out.partition("  answers")[2]
        worth.append(said.replace(str(path), "policy.yaml"))
    assert "± " in worth[0]
    assert worth[1:] == [worth[0], worth[0]]
    shown, other = (printed(path, capsys, "--look") for path in places[:2])
    assert [a == b for a, b in zip(shown, other, strict=True)] == [False, True, False]


def test_without_a_look_no_statement_reads_private_rows(
    rides: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is asked for public rows alone; a planner that verified the data would be noticed."""
    read: list[str] = []

    def record(name: str) -> None:
        original = getattr(DuckDB, name)

        def called(self: DuckDB, *given: object) -> object:
            read.append(name)
            return original(self, *given)

        monkeypatch.setattr(DuckDB, name, called)

    for name in ("measure", "is_empty", "largest", "keep"):
        record(name)
    questions = tuple(map(Question, QUESTIONS))
    with opened(rides) as (_, forecaster):
        report = forecaster.report(questions, Wanted())
    assert report.comparisons
    assert set(read) <= {"largest"}  # of public tables
    monkeypatch.setattr(planner_module, "look_up_public", look_up)  # a planted fault
    with opened(rides) as (_, forecaster):
        forecaster.report(questions)
    assert "is_empty" in read
    read.clear()
    monkeypatch.undo()
    record("measure")
    with opened(rides, look=True) as (_, forecaster):
        forecaster.report(questions[:1])
    assert "measure" in read
