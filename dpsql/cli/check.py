"""``dpsql check``: validates a policy, and compares the source with it."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED
from dpsql.cli.opened import open_existing_ledger as stored_ledger
from dpsql.cli.opened import operator_log
from dpsql.cli.terminal import Progress
from dpsql.diagnostics.refusal import DataBreaksPolicy, PolicyError, SourceMismatch
from dpsql.engines.duckdb import copies
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.engines.facts_file import FactsFile
from dpsql.engines.findings import find_broken_declarations, not_answered
from dpsql.engines.verify import verify
from dpsql.ledger.terms import below_spent, find_loosened_terms, terms_of
from dpsql.policy.against_source import compare
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
        engine = DuckDB(policy.source.path, policy.limits, copies.place(policy))
        try:
            source = engine.describe()
            policy = compare(policy, source)
            shelf, unprepared = copies.read(policy, engine.prepared)
            try:
                stored = FactsFile(policy.source.path, engine.state)
                verify(policy, source, engine, shelf, stored, Progress(sys.stderr))
            except DataBreaksPolicy:
                raise SourceMismatch(*find_broken_declarations(policy, source, engine)) from None
            missing = not_answered(policy, engine)
        finally:
            engine.close()
    describe_views(policy, {}, datetime.now(UTC))
    for warning in (*policy.warnings, *unprepared):
        sys.stderr.write(f"warning: {warning}\n")
    sys.stdout.write(f"{chosen.policy}: sound, and its source matches it\n")
    for line in (*_summary(policy, shelf), *(f"left out   {line}" for line in missing)):
        sys.stdout.write(f"  {line}\n")
    if chosen.against_ledger:
        sys.stdout.writelines(f"{line}\n" for line in _against_ledger(policy))
    return ANSWERED


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
