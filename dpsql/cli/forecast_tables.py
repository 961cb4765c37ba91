"""The tables of ``dpsql forecast``, and predicted noise in the words of ``check`` and ``init``."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from dpsql.cli import terminal
from dpsql.cli.numbers import digits, group_thousands
from dpsql.forecast.look import ExactColumn
from dpsql.forecast.predict import PredictedColumn, Prediction
from dpsql.forecast.questions import Question
from dpsql.forecast.records import error_of, find_exact, first_column
from dpsql.forecast.report import Comparison, Forecast, Report

_LONGEST, _SHORT = 72, 44


def baseline_table(report: Report, size: int, within: float) -> Table:
    """What each number of each question is worth under the policy as it is."""
    headers = [
        "",
        "question",
        "number",
        "noise, 19 times in 20",
        f"within {percent(within)} from",
        "in a session",
    ]
    made = terminal.empty_table(headers, (0, 3, 4, 5))
    for place, (question, forecast) in enumerate(
        zip(report.questions, report.forecasts, strict=True), 1
    ):
        label = terminal.plain(_short(question.text, _LONGEST))
        if forecast.prediction is None or not forecast.prediction.columns:
            said = f"refused ({forecast.refused})" if forecast.refused else "exact, and free"
            made.add_row(str(place), label, "", said)
            continue
        many = "" if forecast.in_session is None else f"{forecast.in_session:,}"
        for column in forecast.prediction.columns:
            cells: list[Text | str] = [
                terminal.plain(column.name),
                width_text(forecast.prediction, column, size),
                needs_text(column.rows_for(within) if column.widths else None),
                many,
            ]
            made.add_row(str(place) if many or label.plain else "", label, *cells)
            label, many = Text(""), ""
        if (few := forecast.prediction.threshold) is not None:
            about = f"groups of fewer than about {few} units are not shown"
            made.add_row("", terminal.mute_text(about))
    return made


def figures_table(report: Report) -> Table:
    """Exact figures of each number of each question: they are private."""
    headers = (
        "",
        "question",
        "number",
        "groups",
        "typical",
        "noise",
        "cut",
        "by rows",
        "by groups",
        "by range",
    )
    made = terminal.empty_table(headers, (0, *range(3, 10)))
    for place, (question, forecast) in enumerate(
        zip(report.questions, report.forecasts, strict=True), 1
    ):
        for column in () if forecast.prediction is None else forecast.prediction.columns:
            about = terminal.plain(_short(_about(question), _SHORT))
            cells = _exact_cells(forecast, column)
            made.add_row(str(place), about, terminal.plain(column.name), *cells)
    return made


def _about(question: Question) -> str:
    """A typical question in words, another one as it is written."""
    return f"{question.table}: {question.about}" if question.about else question.text


def width_text(prediction: Prediction, column: PredictedColumn, size: int) -> str:
    """The noise of a column; where groups differ in it, that of a group of ``size`` rows."""
    if not column.widths:
        return "not known beforehand"
    width = column.width(size)
    if not math.isfinite(width):
        return f"nothing is known from {size:,} rows"
    at_most = "at most " if prediction.searched else ""
    where = "" if column.even else f" in {size:,} rows"
    return f"{at_most}± {_number(width)}{column.about}{where}"


def answers_lines(report: Report, size: int, within: float) -> Iterator[str]:
    """What typical answers are worth, in a line for each question."""
    for question, forecast in zip(report.questions, report.forecasts, strict=True):
        found = forecast.prediction
        said = f"refused ({forecast.refused})"
        if found is not None:
            said = ", ".join(_worth(found, column, size, within) for column in found.columns)
        yield f"{question.table}: {question.about} {said}"


def _worth(found: Prediction, column: PredictedColumn, size: int, within: float) -> str:
    """The noise of a column, and from how many rows on it is small."""
    rows = needs_text(column.rows_for(within) if column.widths else None)
    enough = f", within {percent(within)} from {rows}" if rows else ""
    return f"{width_text(found, column, size)}{enough}"


def needs_text(rows: int | None) -> str:
    """From how many rows on an error is small enough."""
    if rows is None:
        return ""
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def percent(share: float) -> str:
    """A share in percent, with two digits.

    >>> percent(0.05), percent(0.0026), percent(1.5), percent(0.0)
    ('5 %', '0.26 %', '150 %', '0 %')
    """
    hundred = 100 * share
    text = group_thousands(hundred, digits([abs(hundred)], 2))
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def comparison_title(comparison: Comparison, report: Report, size: int, within: float) -> str:
    """What the cells of a comparison hold."""
    key = comparison.knob.key
    if report.looked:
        return f"{key}: noise, and what is cut, in percent of the median group"
    if comparison.knob.column:
        return f"{key}: noise, 19 times in 20; of means in a group of {size:,} rows"
    return f"{key}: rows that a group needs for an error of {percent(within)}"


def comparison_table(comparison: Comparison, report: Report, size: int, within: float) -> Table:
    """The errors of each question under each value of a key; ``now`` marks that of the policy.

    For prices, the last column names the lowest one at which the error is small enough.
    """
    knob, priced = comparison.knob, comparison.knob.key.startswith("query.")
    headers = ["", "question", *(f"{v.value} (now)" if v.own else v.value for v in knob.variants)]
    if priced:
        which = "" if report.looked else f" of {size:,} rows"
        headers.append(f"for {percent(within)}{which}")
    made = terminal.empty_table(headers, (0, *range(2, len(headers))))
    if priced:
        many = map(_in_session, zip(*comparison.forecasts.values(), strict=True))
        made.add_row(
            "", terminal.mute_text("questions in a session"), *map(terminal.mute_text, many)
        )
    for place, found in comparison.forecasts.items():
        about = _about(report.questions[place])
        cells = [_cell(f, comparison, report, size, within) for f in found]
        if priced:
            pairs = zip(knob.variants, found, strict=True)
            errors = [(v.value, error_of(f, size, looked=report.looked)) for v, f in pairs]
            small = (value for value, error in errors if error is not None and error <= within)
            cells.append(next(small, "none of these"))
        made.add_row(str(place + 1), terminal.plain(_short(about, _SHORT)), *cells)
    return made


def _in_session(forecasts: tuple[Forecast, ...]) -> str:
    known = [f.in_session for f in forecasts if f.in_session is not None]
    if not known:
        return ""
    few, many = min(known), max(known)
    return f"{few:,}" if few == many else f"{few:,} .. {many:,}"


def _cell(
    forecast: Forecast, comparison: Comparison, report: Report, size: int, within: float
) -> str:
    """The error of the first column that has one."""
    if forecast.prediction is None:
        return f"refused ({forecast.refused})"
    column = first_column(forecast)
    if column is None:
        return ""
    if report.looked:
        exact = find_exact(forecast.figures, column.position)
        return "" if exact is None else " + ".join(_parts(exact))
    if comparison.knob.column:
        width = column.width(size)
        return f"± {_number(width)}" if math.isfinite(width) else "nothing is known"
    return needs_text(column.rows_for(within)).partition(" ")[0] or "never"


def _parts(exact: ExactColumn) -> list[str]:
    cut = exact.cut or (None if exact.noise is not None else exact.cut)
    known = ((exact.noise, ""), (cut, " cut"))
    return [f"{percent(share)}{what}" for share, what in known if share is not None]


def _exact_cells(forecast: Forecast, column: PredictedColumn) -> list[str]:
    figures, exact = forecast.figures, find_exact(forecast.figures, column.position)
    if figures is None or exact is None:
        return ["", "not known"]
    groups = (
        f"{figures.shown:,}"
        if figures.shown == figures.groups
        else f"{figures.shown:,} of {figures.groups:,}"
    )
    typical = "" if exact.typical is None else _number(exact.typical)
    shares = (exact.noise, exact.cut, exact.rows, exact.groups, exact.values)
    return [groups, typical, *("" if s is None else percent(s) for s in shares)]


def _number(value: float) -> str:
    whole = value == round(value)
    return group_thousands(value, 0 if whole else digits([abs(value)], 2))


def _short(text: str, longest: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
