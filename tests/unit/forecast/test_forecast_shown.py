"""Tables, words, records and pictures of reports that are made up: each kind of cell there is."""

from __future__ import annotations

import io
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from rich.table import Table
from support.forecasts import opened, write_rides

from dpsql.cli import terminal
from dpsql.cli.forecast_tables import (
    answers_lines,
    baseline_table,
    comparison_table,
    comparison_title,
    figures_table,
)
from dpsql.forecast.look import ExactColumn, ExactFigures
from dpsql.forecast.plot import draw
from dpsql.forecast.predict import SIZES, PredictedColumn, Prediction
from dpsql.forecast.questions import Question
from dpsql.forecast.records import records
from dpsql.forecast.report import Comparison, Forecast, Forecaster, Report
from dpsql.forecast.settings import Knob, Variant
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.privacy.cost import Cost

INFINITE = (math.inf,) * len(SIZES)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return load(write_rides(tmp_path_factory.mktemp("rides")))


def column(width: float, place: int = 0) -> PredictedColumn:
    widths = (width,) * len(SIZES)
    return PredictedColumn(place, "n", "value", widths, tuple(width / size for size in SIZES))


def forecast(*found: PredictedColumn, figures: ExactFigures | None = None) -> Forecast:
    return Forecast(Prediction(found, Cost.zero()), in_session=7, figures=figures)


NOTHING = PredictedColumn(0, "n", "value", INFINITE, INFINITE)
UNKNOWN = PredictedColumn(0, "n", "unknown")
REFUSED = Forecast(None, "DP101")


def report(
    policy: Policy,
    *cells: Forecast,
    key: str = "query.epsilon",
    name: str = "",
    looked: bool = False,
) -> Report:
    """One question, with these forecasts under as many variants; the first one is the present."""
    variants = tuple(Variant(str(i), policy, own=i == 0) for i in range(len(cells)))
    knob = Knob(key, variants, "rides" if name else "", name)
    question = Question("SELECT 1 AS n", "number of rows", "rides")
    return Report(
        "analyst", "a price", (question,), cells[:1], (Comparison(knob, {0: cells}),), looked
    )


def row(found: Report) -> str:
    table = comparison_table(found.comparisons[0], found, 1000, 0.05)
    return " | ".join(printed(table).splitlines()[-1].split())


def printed(table: Table) -> str:
    text = io.StringIO()
    terminal.show(table, text)
    return text.getvalue()


def first_table(found: Report) -> str:
    return printed(baseline_table(found, 1000, 0.05))


def test_each_kind_of_cell(policy: Policy) -> None:
    cells = (forecast(column(40)), forecast(NOTHING), forecast(UNKNOWN), REFUSED, forecast())
    found = row(report(policy, *cells))
    assert found.endswith("800 | never | refused | (DP101) | 0")
    assert row(report(policy, forecast(column(90)))).endswith("1,800 | none | of | these")
    wide = report(policy, forecast(column(40)), forecast(NOTHING), key="rides.v: range", name="v")
    assert row(wide).endswith("± | 40 | nothing | is | known")
    assert comparison_title(wide.comparisons[0], wide, 1000, 0.05).startswith(
        "rides.v: range: noise"
    )


def test_each_kind_of_cell_of_exact_figures(policy: Policy) -> None:
    exact = ExactColumn(0, typical=10.0, noise=0.5, cut=0.25, rows=0.25, groups=None, values=-0.5)
    known = forecast(column(40), figures=ExactFigures(1, 2, (exact,)))
    without = forecast(column(40), figures=ExactFigures(1, 1, (ExactColumn(0),)))
    blind = forecast(column(40))
    found = row(report(policy, known, without, blind, looked=True))
    assert found.endswith("50 | % | + | 25 | % | cut | none | of | these")
    good = replace(exact, noise=0.01, cut=None)
    small = forecast(column(40), figures=ExactFigures(1, 1, (good,)))
    assert row(report(policy, small, looked=True)).endswith("1 | % | 0")
    shown = printed(figures_table(report(policy, known, looked=True)))
    assert "1 of 2" in shown
    assert "-50 %" in shown
    assert "not known" in printed(figures_table(report(policy, blind, looked=True)))
    assert "n" not in printed(figures_table(report(policy, REFUSED, looked=True))).splitlines()[-1]


def test_words_for_what_is_not_a_number(policy: Policy) -> None:
    assert "nothing is known from 1,000 rows" in first_table(report(policy, forecast(NOTHING)))
    assert "not known beforehand" in first_table(report(policy, forecast(UNKNOWN)))
    assert "refused (DP101)" in first_table(report(policy, REFUSED))
    assert list(answers_lines(report(policy, REFUSED), 1000, 0.05)) == [
        "rides: number of rows refused (DP101)"
    ]
    searched = replace(forecast(column(40)).prediction, searched=True)  # type: ignore[type-var]
    assert list(answers_lines(report(policy, Forecast(searched)), 1000, 0.05)) == [
        "rides: number of rows at most ± 40, within 5 % from 800 rows"
    ]


def test_how_many_questions_a_session_admits(policy: Policy) -> None:
    def said(*cells: Forecast) -> str:
        found = report(policy, forecast(column(40)))
        rows = {i: (cell,) for i, cell in enumerate(cells)}
        many = replace(
            found, questions=found.questions * len(cells),
            comparisons=(replace(found.comparisons[0], forecasts=rows),),
        )  # fmt: skip
        table = comparison_table(many.comparisons[0], many, 1000, 0.05)
        return re.sub(" +", " ", printed(table))

    free = replace(forecast(column(40)), in_session=None)
    assert "in a session 7 .. 9\n" in said(
        forecast(column(40)), replace(forecast(column(40)), in_session=9), free
    )
    assert "in a session\n" in said(free)


def test_records_have_no_infinite_numbers(policy: Policy) -> None:
    [one, again] = records(report(policy, forecast(NOTHING)), 1000, 0.05)
    assert (one["width"], one["share"], one["needs"]) == (None, None, None)
    assert (one["key"], again["key"]) == (None, "query.epsilon")
    [one, _] = records(report(policy, REFUSED, looked=True), 1000, 0.05)
    assert (one["refused"], one["column"], one["exact_cut"]) == ("DP101", None, None)
    [one, _] = records(report(policy, forecast(UNKNOWN)), 1000, 0.05)
    assert (one["column"], one["errs"], one["width"]) == ("n", "unknown", None)


def lines_of(found: Report) -> list[str]:
    root = ET.fromstring(draw(found, 1000, "a notice"))
    return [line.get("points") or "" for line in root.iter("{http://www.w3.org/2000/svg}polyline")]


def test_a_picture_has_a_line_where_errors_are_known(policy: Policy) -> None:
    one = lines_of(report(policy, forecast(column(40)), forecast(column(80)), REFUSED))
    assert len(one) == 2  # in the panel and in the legend
    assert len(one[0].split()) == 2  # the refused variant has no point
    assert (
        one[0].split()[0].split(",")[1] > one[0].split()[1].split(",")[1]
    )  # a larger error is higher
    assert lines_of(report(policy, forecast(NOTHING), forecast(UNKNOWN))) == []
    assert lines_of(report(policy, REFUSED)) == []


def test_ranges_are_drawn_as_shares_of_one_value(policy: Policy) -> None:
    half = forecast(PredictedColumn(0, "n", "value", (20.0,) * len(SIZES), column(40).shares))
    ranged = report(policy, forecast(column(40)), half, key="rides.v: range", name="v")
    first, second = lines_of(ranged)[0].split()
    assert float(first.split(",")[1]) < float(second.split(",")[1])
    unknown = report(policy, forecast(UNKNOWN), half, key="rides.v: range", name="v")
    assert len(lines_of(unknown)[0].split()) == 1
    odd = report(policy, forecast(column(40)), forecast(NOTHING), key="rides.v: range", name="v")
    assert len(lines_of(odd)[0].split()) == 1


def test_exact_figures_are_drawn_with_what_is_cut(policy: Policy) -> None:
    def cut(noise: float | None, share: float | None) -> Forecast:
        exact = ExactColumn(0, typical=1.0, noise=noise, cut=share)
        return forecast(column(40), figures=ExactFigures(1, 1, (exact,)))

    drawn = lines_of(report(policy, cut(0.1, 0.4), cut(0.1, None), cut(None, 0.4), looked=True))
    first, second = drawn[0].split()
    assert float(first.split(",")[1]) < float(second.split(",")[1])


def test_a_question_that_a_variant_refuses_is_compared(tmp_path: Path) -> None:
    with opened(write_rides(tmp_path)) as (planner, forecaster):
        question = Question("SELECT minutes, COUNT(*) AS n FROM rides GROUP BY minutes")
        pure = replace(planner.policy.roles["analyst"], mechanisms=("gaussian",))
        other = replace(planner.policy, roles={"analyst": pure})
        knob = Knob("key", (Variant("a", planner.policy, own=True), Variant("b", other, own=False)))
        own = forecaster.forecast(planner.policy, question)
        refused = Question("SELECT rider FROM rides")
        found = forecaster._compare(knob, (question, refused), (own, REFUSED))
        assert list(found.forecasts) == [0]
        assert found.forecasts[0][0] is own
        monkey = Forecaster(planner, "analyst")
        monkey.forecast = lambda *_: REFUSED  # type: ignore[method-assign]
        assert monkey._compare(knob, (question,), (own,)).forecasts[0][1] is REFUSED
