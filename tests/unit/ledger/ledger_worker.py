"""What the processes of test_ledger_processes.py do. Runs in processes of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction

from ledger_world import EVENT, NOTE, make_account

from dpsql.diagnostics.refusal import OutOfBudget
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.store import RecallKey
from dpsql.privacy.cost import Cost

ACCOUNTS = (make_account("dataset", 100), make_account("role:growth", 1))
ONE = Cost(epsilon=Fraction(1, 1000))
"""A thousand of these fit the role."""


def clock() -> datetime:
    return datetime.now(UTC)


def hammer(path: str, times: int, tell: Callable[[int], None]) -> None:
    """Ask ``times`` times; tell how often it was granted."""
    granted = 0
    with SqliteLedger.open(path, clock, wait=60) as ledger:
        for _ in range(times):
            try:
                hold = ledger.reserve(ACCOUNTS, ONE, [EVENT], NOTE, start=True)
            except OutOfBudget:
                continue
            granted += 1
            if granted % 10 == 0:
                ledger.commit(hold, {RecallKey(f"{os.getpid()}-{granted}"): b"answer"})
    tell(granted)


def answer_for_ever(path: str, answers: int) -> None:
    """Query after query; each answer is written to the file descriptor ``answers``."""
    with SqliteLedger.open(path, clock, wait=60) as ledger:
        number = 0
        while True:
            number += 1
            hold = ledger.reserve(ACCOUNTS[:1], ONE, [EVENT], NOTE, start=number % 2 == 0)
            if number % 7 == 0 and number % 2:
                ledger.cancel(hold)
                continue
            if number % 2:
                ledger.start(hold)
            ledger.commit(hold, {RecallKey(f"{os.getpid()}-{number}"): b"answer"})
            os.write(answers, b"%d\n" % hold.id)


if __name__ == "__main__":
    if sys.argv[1] == "hammer":
        hammer(sys.argv[2], int(sys.argv[3]), print)
    else:
        answer_for_ever(sys.argv[2], sys.stdout.fileno())
