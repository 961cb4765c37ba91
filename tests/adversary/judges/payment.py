"""What an answer states is what the ledger says; what is free was paid for before, or tells nothing.

The ledger is read by sqlite3 after each step (see ``books.py``), and its chain is verified by
``dpsql audit`` at the end. The judge needs one run, so it looks at both runs of a case.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction

from tests.adversary.books import NANO
from tests.adversary.faces.server import run
from tests.adversary.model import Case, Charge, Finding, Run, Transcript, finding
from tests.adversary.place import POLICY

ATTO = 10**18
TOLD_DIGITS = Fraction(1, 10**3)
"""Notices round what they tell to four digits."""
SILENT = frozenset({"DP901", "DP902", "DP903", "DP904", "57014", "CONNECTION", "DP905"})
"""Errors after which a charge may stand: the engine was asked, and no answer left."""


def charged(charges: Sequence[Charge]) -> tuple[Fraction, Fraction]:
    """Epsilon and delta of all entries that count."""
    kept = [c for c in charges if c.state not in ("released", "void", "refunded")]
    epsilon = sum((Fraction(c.epsilon, NANO) for c in kept), Fraction(0))
    return epsilon, sum((Fraction(c.delta, ATTO) for c in kept), Fraction(0))


def near(told: Fraction, kept: Fraction, least: Fraction) -> bool:
    """Whether what was told is what is kept, as far as it was told. ``least`` is the ledger's unit."""
    return abs(told - kept) <= max(told, kept) * TOLD_DIGITS + 2 * least


def mistakes(transcript: Transcript, charges: Sequence[Charge]) -> Iterator[str]:
    """What is wrong between an answer and the entries that it caused."""
    epsilon, delta = charged(charges)
    paid = epsilon > 0 or delta > 0
    if transcript.error is not None:
        if paid and transcript.error.code not in SILENT:
            yield f"refused with {transcript.error.code}, and charged epsilon {float(epsilon)}"
        return
    if transcript.step.act not in ("ask", "cancel"):
        if paid:
            yield f"{transcript.step.act} was charged epsilon {float(epsilon)}"
        return
    if transcript.cost is None:
        if paid:
            yield f"charged epsilon {float(epsilon)}, and no cost was told"
        return
    told = tuple(Fraction(each) for each in transcript.cost)
    if not near(told[0], epsilon, Fraction(1, NANO)):
        yield f"told epsilon {transcript.cost[0]}, charged {float(epsilon)}"
    if not near(told[1], delta, Fraction(1, ATTO)):
        yield f"told delta {transcript.cost[1]}, charged {float(delta)}"
    if transcript.recalled and paid:
        yield f"a stored answer was charged epsilon {float(epsilon)}"


def audited(kept: Run) -> str:
    """What ``dpsql audit`` finds wrong, or nothing."""
    if kept.folder is None or not kept.folder.exists():
        return ""
    done = run("audit", "--format", "json", "--policy", str(kept.folder / POLICY))
    if done.returncode:
        return done.stderr.decode()
    found = json.loads(done.stdout)
    return "" if found["sound"] and not found["problems"] else json.dumps(found["problems"])


class Payment:
    """Compares answers with the ledger. ``audit`` says whether the chain is verified too."""

    name = "payment"

    def __init__(self, *, audit: bool = False) -> None:
        """The audit takes a process of its own for each run."""
        self._audit = audit

    def judge(self, case: Case) -> Finding | None:
        """The first step whose price is not what was charged."""
        for side in (case.left,) if case.right is case.left else (case.left, case.right):
            for number, transcript in enumerate(side.transcripts):
                mine = [c for c in side.charges if c.step == number]
                for mistake in mistakes(transcript, mine):
                    return finding(self.name, case, number, mistake)
            if self._audit and (problem := audited(side)):
                return finding(self.name, case, len(case.steps) - 1, "the audit fails", [problem])
        return None
