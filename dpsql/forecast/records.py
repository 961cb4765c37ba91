"""A report as flat records, one for each column of each answer under each variant, for programs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict

from dpsql.forecast.look import ExactColumn, ExactFigures
from dpsql.forecast.predict import PredictedColumn
from dpsql.forecast.report import Forecast, Report

Field = str | int | float | bool | None
Entry = dict[str, Field]
FIGURES = ("typical", "noise", "cut", "rows", "groups", "values")


def records(report: Report, size: int, within: float) -> Iterator[Entry]:
    """All records. ``width`` and ``share`` are for a group of ``size`` rows.

    ``needs`` is the number of rows from which the error is at most ``within``, as a share. Fields
    that begin with ``exact_`` are there only if the data was looked at.
    """
    for place, forecast in enumerate(report.forecasts):
        yield from _of(report, place, forecast, {"key": None, "value": None}, size, within)
    for comparison in report.comparisons:
        for place, found in comparison.forecasts.items():
            for variant, forecast in zip(comparison.knob.variants, found, strict=True):
                about: Entry = {"key": comparison.knob.key, "value": variant.value}
                yield from _of(report, place, forecast, about, size, within)


def _of(
    report: Report, place: int, forecast: Forecast, about: Entry, size: int, within: float
) -> Iterator[Entry]:
    question = report.questions[place]
    base: Entry = {"question": place + 1, "sql": question.text, **about}
    if forecast.prediction is None:
        yield {**base, **_column(None, size, within), **_cost(forecast), **_exact(report, forecast)}
        return
    for column in forecast.prediction.columns:
        figures = _exact(report, forecast, column.position)
        yield {**base, **_column(column, size, within), **_cost(forecast), **figures}


def _column(column: PredictedColumn | None, size: int, within: float) -> Entry:
    names = ("column", "errs", "width", "share", "needs")
    if column is None or not column.widths:
        known = (None, None) if column is None else (column.name, column.errs)
        return dict(zip(names, (*known, None, None, None), strict=True))
    numbers = finite(column.width(size)), finite(column.share(size)), column.rows_for(within)
    return dict(zip(names, (column.name, column.errs, *numbers), strict=True))


def _cost(forecast: Forecast) -> Entry:
    found = forecast.prediction
    cost = None if found is None else found.cost
    return {
        "threshold": None if found is None else found.threshold,
        "searched": found is not None and found.searched,
        "epsilon": None if cost is None else float(cost.epsilon),
        "delta": None if cost is None else float(cost.delta),
        "rho": None if cost is None else float(cost.rho),
        "in_session": forecast.in_session,
        "refused": forecast.refused or None,
    }


def _exact(report: Report, forecast: Forecast, position: int | None = None) -> Entry:
    if not report.looked:
        return {}
    figures = forecast.figures
    column = find_exact(figures, position)
    known = {} if column is None else asdict(column)
    return {
        "exact_shown": None if figures is None else figures.shown,
        "exact_groups": None if figures is None else figures.groups,
        **{f"exact_{name}": known.get(name) for name in FIGURES},
    }


def find_exact(figures: ExactFigures | None, position: int | None) -> ExactColumn | None:
    """The figures of the column at a position."""
    columns = () if figures is None else figures.columns
    return next((column for column in columns if column.position == position), None)


def first_column(forecast: Forecast) -> PredictedColumn | None:
    """The first column whose noise is known beforehand: it stands for the whole answer."""
    columns = () if forecast.prediction is None else forecast.prediction.columns
    return next((column for column in columns if column.widths), None)


def error_of(forecast: Forecast, size: int, *, looked: bool) -> float | None:
    """The error of the first column, as a share: noise, and also what is cut if the data was looked at."""
    column = first_column(forecast)
    if column is None:
        return None
    if not looked:
        return finite(column.share(size))
    exact = find_exact(forecast.figures, column.position)
    if exact is None or exact.noise is None:
        return None
    return exact.noise + (exact.cut or 0.0)


def finite(number: float) -> float | None:
    """The number; None if it is infinite."""
    return number if math.isfinite(number) else None
