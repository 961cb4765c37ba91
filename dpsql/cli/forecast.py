"""``dpsql forecast``: how exact answers will be under a policy, and under others near it."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TextIO, TypeVar

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED, REFUSED, Usage
from dpsql.cli.forecast_tables import (
    baseline_table,
    comparison_table,
    comparison_title,
    figures_table,
)
from dpsql.cli.opened import operator_log
from dpsql.cli.script import statements
from dpsql.diagnostics.quote import quote
from dpsql.engines.duckdb.exact_limits import read_exact_limits
from dpsql.exact import parse_exact
from dpsql.forecast.look import Look
from dpsql.forecast.planner import open_planner
from dpsql.forecast.plot import draw
from dpsql.forecast.questions import Question, typical_questions
from dpsql.forecast.records import records
from dpsql.forecast.report import Forecaster, Report
from dpsql.forecast.settings import LEAST_ROWS, Wanted, composes_in_rho
from dpsql.policy.load import load
from dpsql.policy.model import Policy

T = TypeVar("T")
LARGEST = 10**9
LOOKED = "Read from the data, and private: these are exact figures. Show them to no analyst."
SUPPOSED = (
    "Of sums and means, rows are counted for values at three quarters of their range in the mean."
)
PREDICTED = "No private row was read: this follows from the policy alone."


def run(chosen: argparse.Namespace) -> int:
    """Show what answers will be worth, as a table, CSV or JSON, and as a picture if asked."""
    policy, wanted = load(chosen.policy), _wanted(chosen)
    within = float(_read("within", chosen.within, _percent)[0])
    questions = None if chosen.questions is None else _questions(chosen)
    with operator_log(chosen.policy):
        report = _report(policy, chosen, wanted, questions)
    notice = LOOKED if report.looked else PREDICTED
    if chosen.plot is not None:
        chosen.plot.write_text(draw(report, chosen.size, notice), encoding="utf-8")
    if chosen.output is None:
        _write(report, chosen, within, notice, sys.stdout)
    else:
        with chosen.output.open("w", encoding="utf-8") as file:
            _write(report, chosen, within, notice, file)
    if chosen.format == "csv":  # it has no place for a sentence
        terminal.say(notice, sys.stderr)
    return REFUSED if any(forecast.refused for forecast in report.forecasts) else ANSWERED


def _report(
    policy: Policy, chosen: argparse.Namespace, wanted: Wanted, asked: Sequence[Question] | None
) -> Report:
    limits = None
    if chosen.look:  # the planner's engine would lock the file in another configuration
        limits = read_exact_limits(policy.source.path, policy)
    with open_planner(policy) as planner:
        policy = planner.policy
        role = planner.service(policy).session(chosen.role).role
        if wanted.shares and not composes_in_rho(policy, role):
            raise Usage(f'--share: the accounts of role "{role}" do not all compose in zCDP')
        questions = typical_questions(policy, role) if asked is None else asked
        look = None if limits is None else Look(planner, role, limits)
        progress = terminal.Progress(sys.stderr, "trying settings: {} of {}, {}")
        return Forecaster(planner, role, chosen.dialect, look, progress).report(questions, wanted)


def _questions(chosen: argparse.Namespace) -> tuple[Question, ...]:
    try:
        script = chosen.questions.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise Usage(f"{chosen.questions} cannot be read: {error}") from None
    found = tuple(Question(text) for text in statements(script))
    if not found:
        raise Usage(f"{chosen.questions}: there is no SQL in it")
    return found


def _write(
    report: Report, chosen: argparse.Namespace, within: float, notice: str, file: TextIO
) -> None:
    if chosen.format == "table":
        _show(report, chosen.size, within, notice, file)
        return
    found = list(records(report, chosen.size, within))
    if chosen.format == "json":
        head = {"role": report.role, "looked": report.looked, "notice": notice}
        whole = {**head, "size": chosen.size, "within": within, "forecasts": found}
        file.write(json.dumps(whole, ensure_ascii=False) + "\n")
        return
    names = list(dict.fromkeys(name for record in found for name in record))
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)


def _show(report: Report, size: int, within: float, notice: str, file: TextIO) -> None:
    file.write(f"{notice}\n\nAs the policy is: {report.price}\n")
    terminal.show(baseline_table(report, size, within), file)
    if report.looked:
        file.write("\nWhat the data says: true values, and errors in percent of them\n")
        terminal.show(figures_table(report), file)
    for comparison in report.comparisons:
        file.write(f"\n{comparison_title(comparison, report, size, within)}\n")
        terminal.show(comparison_table(comparison, report, size, within), file)
    file.write(f"\n{SUPPOSED}\n")


def _wanted(chosen: argparse.Namespace) -> Wanted:
    return Wanted(
        epsilons=_read("epsilon", chosen.epsilon, parse_exact),
        shares=_read("share", chosen.share, _percent, most=Fraction(1)),
        rows=_read("rows", chosen.rows, int, least=LEAST_ROWS),
        groups=_read("groups", chosen.groups, int),
        ranges=_read("ranges", chosen.ranges, parse_exact),
    )


def _percent(text: str) -> Fraction:
    return parse_exact(text.removesuffix("%").strip()) / 100


def _read(
    name: str, text: str | None, read: Callable[[str], T], *, least: int = 0,
    most: Fraction = Fraction(LARGEST),
) -> tuple[T, ...]:  # fmt: skip
    """The numbers of a list with commas, sorted; all above 0, and from ``least`` to ``most``."""
    try:
        found = tuple({read(part.strip()) for part in (text or "").split(",") if part.strip()})
    except (ValueError, ArithmeticError):
        found = ()
    inside = all(0 < number <= most and number >= least for number in found)  # type: ignore[operator]
    if text is not None and not (found and inside):
        above = f"from {least}" if least else "above 0"
        raise Usage(
            f"--{name} takes numbers {above}, with commas between them, not {quote(text)!r}"
        )
    return tuple(sorted(found))  # type: ignore[type-var]
