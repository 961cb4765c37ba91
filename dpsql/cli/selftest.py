"""``dpsql selftest``: audits this policy's answers on made-up data; the source is not opened."""

from __future__ import annotations

import argparse
import sys

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED, FAILED
from dpsql.policy.load import load
from dpsql.selftest import run as audit


def run(chosen: argparse.Namespace) -> int:
    """Every question, with what epsilon is at least; the exit code says whether all passed."""
    made = terminal.table(
        ("table", "scenario", "question", "epsilon at least", "charged", "delta", "samples", ""),
        (3, 4, 5, 6),
    )
    failed, seconds, policy = 0, chosen.seconds, load(chosen.policy)
    for found in audit(policy, chosen.samples, seconds=seconds, jobs=chosen.jobs):
        said = "" if found.passed else found.shape or "more than the charge"
        failed += not found.passed
        made.add_row(
            terminal.plain(found.table), found.scenario, terminal.plain(found.question),
            f"{found.bound:.3f}", f"{found.charged.epsilon:.3f}", f"{found.charged.delta:.3g}",
            str(found.samples), said,
        )  # fmt: skip
    terminal.show(made)
    verdict = (
        "no answer betrays more than its charge"
        if not failed
        else f"{failed} answers betray more than their charge"
    )
    sys.stdout.write(f"\n{verdict}\n")
    return FAILED if failed else ANSWERED
