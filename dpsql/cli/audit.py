"""``dpsql audit``: what the ledger recorded, and whether it is as it was written."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED, FAILED
from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger.charge import ATTO, NANO
from dpsql.ledger.open import open_ledger
from dpsql.ledger.shortage import more
from dpsql.ledger.store import Verification
from dpsql.policy.load import load

_LONGEST = 60


def run(chosen: argparse.Namespace) -> int:
    """Every event of the ledger, then the verdict; an unsound ledger is a failure."""
    policy = load(chosen.policy)
    if policy.ledger_server is None and not policy.ledger.exists():
        place = policy.ledger
        raise LedgerFailed(f"the ledger {place} does not exist", "nothing was asked under it yet")
    made = terminal.table(("", "time", "hold", "event", "epsilon", "delta", "who", "asked"), (0, 2))
    with closing(open_ledger(policy, lambda: datetime.now(UTC))) as ledger:
        for record in ledger.events():
            made.add_row(str(record.seq), *_row(record.hold, record.content))
        verdict = ledger.verify(chosen.noted)
    terminal.show(made)
    for line in _verdict(verdict):
        sys.stdout.write(line + "\n")
    return ANSWERED if verdict.sound else FAILED


def _row(hold: int, content: dict[str, Any]) -> list[Any]:
    charge = content.get("charge")
    epsilon, delta = ("", "") if charge is None else _cost(charge)
    who = f"{content['role']}/{content['session']}" if "role" in content else ""
    asked = " ".join(str(content.get("statement", "")).split())
    short = asked if len(asked) <= _LONGEST else f"{asked[: _LONGEST - 1]}…"
    time = str(content.get("time", ""))[:19].replace("T", " ")
    return [
        terminal.muted(time), str(hold), terminal.plain(str(content.get("state") or content.get("owner", ""))),
        epsilon, delta, terminal.plain(who), terminal.plain(short),
    ]  # fmt: skip


def _cost(charge: list[int]) -> tuple[str, str]:
    return more(Fraction(charge[0], NANO)), more(Fraction(charge[1], ATTO))


def _verdict(verdict: Verification) -> list[str]:
    count = f"{verdict.records:,} record{'' if verdict.records == 1 else 's'}"
    if verdict.sound:
        return [f"sound: {count}, every hash and balance recomputed", f"head {verdict.head}"]
    return [f"UNSOUND: {count}", *(f"  {p}" for p in verdict.problems), f"head {verdict.head}"]
