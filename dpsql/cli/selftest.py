"""``dpsql selftest``: audits the policy's answers on synthetic data; the source is not opened."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED, FAILED
from dpsql.policy.load import load
from dpsql.selftest import Finding
from dpsql.selftest import run as audit
from dpsql.selftest.power import Power, describe_powers


def run(chosen: argparse.Namespace) -> int:
    """Show a lower bound on epsilon for every question; the exit code says whether all passed."""
    made = terminal.empty_table(
        (
            "table", "scenario", "question", "epsilon at least", "charged", "delta", "samples",
            "noticed from", "",
        ),
        (3, 4, 5, 6, 7),
    )  # fmt: skip
    seconds, policy, findings = chosen.seconds, load(chosen.policy), []
    for found in audit(policy, chosen.samples, seconds=seconds, jobs=chosen.jobs):
        findings.append(found)
        made.add_row(
            terminal.plain(found.table), found.scenario, terminal.plain(found.question),
            f"{found.bound:.3f}", f"{found.charged.epsilon:.3f}", f"{found.charged.delta:.3g}",
            str(found.samples), _noticed(found), terminal.plain(found.said),
        )  # fmt: skip
    terminal.show(made)
    sys.stdout.write("\n" + "".join(f"{line}\n" for line in describe_powers(_powers(findings))))
    sys.stdout.write(f"{_verdict(findings)}\n")
    return ANSWERED if findings and all(found.passed for found in findings) else FAILED


def _powers(findings: Sequence[Finding]) -> list[Power]:
    return [found.power for found in findings if found.power is not None]


def _noticed(found: Finding) -> str:
    """The epsilon from which a fault would be noticed; empty if the question was not answered."""
    if found.power is None:
        return ""
    return "never" if math.isinf(found.power.least) else f"{found.power.least:.2f}"


def _verdict(findings: Sequence[Finding]) -> str:
    """A summary of the failures; the table lists the questions that were not answered."""
    wrong = [found for found in findings if not found.passed]
    silent = [found for found in wrong if found.said.startswith("not answered")]
    if not findings:
        return "nothing was asked"
    betraying, excused = len(wrong) - len(silent), sum(bool(f.explained) for f in findings)
    said = [
        f"{betraying} answers reveal more than their charge"
        if betraying
        else "no answer reveals more than its charge"
    ]
    if silent:
        said.append(f"{len(silent)} questions were not answered and should have been")
    if excused:
        said.append(f"{excused} were not answered under this policy")
    return "; ".join(said)
