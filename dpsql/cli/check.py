"""``dpsql check``: validates a policy, and compares the source with it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpsql.cli import terminal
from dpsql.cli.compared import ComparedData, compare_data
from dpsql.cli.exits import ANSWERED
from dpsql.cli.forecast_tables import answers_lines
from dpsql.cli.opened import open_existing_ledger as stored_ledger
from dpsql.cli.opened import operator_log
from dpsql.diagnostics.refusal import LedgerFailed, PolicyError
from dpsql.forecast.planner import open_planner
from dpsql.forecast.questions import few_questions
from dpsql.forecast.report import SIZE, WITHIN, Forecaster
from dpsql.ledger.data_notes import find_change
from dpsql.ledger.terms import below_spent, find_loosened_terms, terms_of
from dpsql.policy.load import load
from dpsql.policy.model import Policy, Unit
from dpsql.policy.prepared_copies import PreparedCopies
from dpsql.service.views import describe_views


def run(chosen: argparse.Namespace) -> int:
    """Print what the policy protects, and which rows are in no answer; raise problems with places.

    The data is compared with the policy's declarations, and the outcome is stored for ``serve``.
    """
    policy = load(chosen.policy)
    with operator_log(chosen.policy):
        found = compare_data(policy)
    policy = found.policy
    describe_views(policy, {}, datetime.now(UTC))
    stale, unknown = _stale(found)
    for warning in (*policy.warnings, *found.unprepared, *stale, *unknown):
        sys.stderr.write(f"warning: {warning}\n")
    but = ", but stored answers are about older data" if stale else ""
    sys.stdout.write(f"{chosen.policy}: sound, and its source matches it{but}\n")
    missing = (f"left out   {line}" for line in found.missing)
    for line in (*_summary(policy, found.shelf), *missing, *_answers(policy, chosen.policy)):
        sys.stdout.write(f"  {line}\n")
    if chosen.against_ledger:
        sys.stdout.writelines(f"{line}\n" for line in _against_ledger(policy))
    return ANSWERED


def _stale(found: ComparedData) -> tuple[list[str], list[str]]:
    """What is said of data that changed while its version did not, and where that is not known.

    Raises if the policy refuses such data. A ledger is only read, and is not made.
    """
    try:
        ledger = stored_ledger(found.policy)
        if ledger is None:
            return [], []
        with closing(ledger):
            said = find_change(found.policy, ledger, found.content)
    except LedgerFailed as error:
        return [], [f"whether the data changed while data_version did not is not known: {error}"]
    return ([], []) if said is None else ([said], [])


def _against_ledger(policy: Policy) -> list[str]:
    """The promises that the policy weakens; raises if a limit is below what is spent already."""
    ledger = stored_ledger(policy)
    known: dict[str, Any] | None = None
    problems: tuple[str, ...] = ()
    if ledger is not None:
        with closing(ledger):
            known, problems = ledger.terms(), below_spent(policy, ledger, datetime.now(UTC))
    if problems:
        raise PolicyError(*(f"{policy.path.name}: {problem}" for problem in problems))
    if known is None:
        return ["nothing was asked under it yet"]
    weaker = find_loosened_terms(known, terms_of(policy))
    if not weaker:
        return ["no promise is weaker than when the policy was served last"]
    return ["weaker than when the policy was served last:", *(f"  {line}" for line in weaker)]


def _summary(policy: Policy, shelf: PreparedCopies) -> list[str]:
    private = [t.name for t in policy.tables.values() if not t.public]
    public = [t.name for t in policy.tables.values() if t.public]
    units = [_protected(policy, unit) for unit in policy.units.values()]
    return [
        f"protects   {_listed(units)}",
        f"private    {_listed(private)}",
        f"public     {_listed(public)}",
        *([f"prepared   {_listed(list(shelf.copies))}"] if shelf.copies else []),
        *([f"views      {_listed(list(policy.views))}"] if policy.views else []),
        f"roles      {_listed(list(policy.roles))}",
        f"dataset    {terminal.spent(policy.dataset.epsilon, policy.dataset.delta)} in all",
        f"ledger     {policy.ledger.name}",
    ]


def _answers(policy: Policy, path: Path) -> Iterator[str]:
    """What typical answers are worth, 19 times in 20: it follows from the policy alone."""
    asked = False
    with open_planner(policy) as planner:
        for role in policy.roles:
            report = Forecaster(planner, role).report(few_questions(policy, role))
            if report.questions:
                asked = True
                yield f"answers    {report.price}; 19 times in 20 noise is"
                yield from (f"  {line}" for line in answers_lines(report, SIZE, WITHIN))
    if asked:
        yield f"           other questions and settings: dpsql forecast --policy {path}"


def _protected(policy: Policy, unit: Unit) -> str:
    """The protected unit, and the columns that identify it."""
    if unit.is_row:
        return f"each row of {unit.table}"
    if unit.table is not None:
        return f"{unit.name} ({unit.table}.{', '.join(unit.key)})"
    holders = [t for t in policy.tables.values() if t.unit == unit.name and not t.path]
    places = [f"{t.name}.{', '.join(t.unit_columns)}" for t in holders]
    return f"{unit.name} ({'; '.join(places)})"


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "nothing"
