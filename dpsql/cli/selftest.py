"""``dpsql selftest``: audits this policy's answers on made-up data; the source is not opened."""

from __future__ import annotations

import argparse
import sys

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED, FAILED
from dpsql.policy.load import load
from dpsql.selftest import EPSILON
from dpsql.selftest import run as audit


def run(chosen: argparse.Namespace) -> int:
    """Every question, with what epsilon is at least; the exit code says whether all passed."""
    made = terminal.table(
        ("table", "scenario", "question", "epsilon at least", "samples", ""), (3, 4)
    )
    failed = 0
    for found in audit(load(chosen.policy), chosen.seconds):
        said = "" if found.passed else found.shape or f"more than the {EPSILON:g} charged"
        failed += not found.passed
        made.add_row(
            terminal.plain(found.table), found.scenario, terminal.plain(found.question),
            f"{found.bound:.3f}", str(found.samples), said,
        )  # fmt: skip
    terminal.show(made)
    verdict = (
        "no answer betrays more than its charge"
        if not failed
        else f"{failed} answers betray more than their charge"
    )
    sys.stdout.write(f"\n{verdict}\n")
    return FAILED if failed else ANSWERED
