"""Repairs a ledger whose last entries a wrong clock dated into the future.

A ledger admits no query before the time of its last entry, so that the budgets of past windows do
not open again. So a clock that was wrong for an hour can close a ledger for years.

Claim: a repair gives nobody more budget than the windows of the policy do.
Argument: charges with future dates were made before now. The window in which they were made is not
    known, so they are also charged to the present window, and stay charged to the future one.
Assumes: the clock is right now. The owner types today's date, which is compared with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from dpsql.ledger import rows
from dpsql.ledger.accounts import window_now
from dpsql.ledger.chain import OWNER
from dpsql.ledger.charge import Charge
from dpsql.ledger.rows import Database
from dpsql.ledger.states import State


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """The result of a repair."""

    was: datetime
    """The time of the last entry, by the wrong clock."""
    added: Mapping[str, Charge]
    """The charges added to present windows for entries with future dates."""


def put_clock_right(db: Database, now: datetime) -> RepairOutcome | None:
    """Let the ledger continue from ``now``, in the policy's time zone; None if it is not ahead."""
    known, time = rows.meta(db), rows.utc(now)
    was, closed = rows.latest(db, known), known.get(rows.CLOSED, "")
    if was <= now and closed <= time:
        return None
    added: dict[str, Charge] = {}
    for state, accounts, charge in rows.holds_after(db, rows.put_right(known)[0], time):
        for account in accounts if State(state).spent else ():
            present = window_now(account, now)
            if present != account:
                added[present] = added.get(present, Charge()) + charge
    spent = rows.all_spent(db)
    before = {account: spent.get(account, Charge()) for account in added}
    rows.set_spent(db, {a: (before[a], before[a] + more) for a, more in added.items()})
    content: dict[str, object] = {
        "owner": "clock put right",
        "time": time,
        "was": rows.utc(was),
        "added": {account: charge.numbers for account, charge in added.items()},
    }
    marks = {rows.CLOCK: json.dumps([rows.last_hold(db), time])}
    if closed > time:
        marks[rows.CLOSED] = time
    for mark, value in marks.items():
        rows.put_meta(db, mark, value)
    rows.append(db, OWNER, content | marks)
    return RepairOutcome(was, added)
