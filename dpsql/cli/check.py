"""``dpsql check``: is this a policy, and is the source what it says?"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED
from dpsql.engines.duckdb import DuckDB
from dpsql.policy.against_source import compare
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.service.views import described


def run(chosen: argparse.Namespace) -> int:
    """Say what the policy protects; problems are raised with their places. Reads no rows."""
    policy = load(chosen.policy)
    engine = DuckDB(policy.source.path, policy.limits)
    try:
        policy = compare(policy, engine.describe())
    finally:
        engine.close()
    described(policy, {}, datetime.now(UTC))
    for warning in policy.warnings:
        sys.stderr.write(f"warning: {warning}\n")
    sys.stdout.write(f"{chosen.policy}: sound, and its source is what it says\n")
    for line in _summary(policy):
        sys.stdout.write(f"  {line}\n")
    return ANSWERED


def _summary(policy: Policy) -> list[str]:
    private = [t.name for t in policy.tables.values() if not t.public]
    public = [t.name for t in policy.tables.values() if t.public]
    units = [
        f"each row of {u.table}" if u.is_row else f"{u.name} ({u.table}.{', '.join(u.key)})"
        for u in policy.units.values()
    ]
    return [
        f"protects   {_listed(units)}",
        f"private    {_listed(private)}",
        f"public     {_listed(public)}",
        *([f"views      {_listed(list(policy.views))}"] if policy.views else []),
        f"roles      {_listed(list(policy.roles))}",
        f"dataset    {terminal.spent(policy.dataset.epsilon, policy.dataset.delta)} in all",
        f"ledger     {policy.ledger.name}",
    ]


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "nothing"
