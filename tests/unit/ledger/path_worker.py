"""What killed processes do in test_ledger_path.py: whole queries, one after the other."""

from __future__ import annotations

import os
import secrets
import threading
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from ledger_world import EVENT, NOTE, make_account

from dpsql.diagnostics.refusal import OutOfBudget
from dpsql.ledger.charge import NANO
from dpsql.ledger.postgres import PostgresLedger
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.store import Ledger, RecallKey
from dpsql.privacy.cost import Cost
from dpsql.service import Service

ACCOUNTS = (make_account("dataset", 100), make_account("role:growth", 1))
ONE = Cost(epsilon=Fraction(1, 1000))
"""A thousand of these fit the role."""


def clock() -> datetime:
    return datetime.now(UTC)


def opened(store: str, place: str, schema: str) -> Ledger:
    if store == "sqlite":
        return SqliteLedger.open(Path(place), clock, wait=60)
    return PostgresLedger.open(place, clock, schema=schema, wait=60)


def ask_for_ever(policy: str, answers: int) -> None:
    """Query after query, some of them asked before, or less exactly; answers go to ``answers``."""
    os.write(answers, b"ready\n")
    with Service.open(policy) as service:
        session = service.session("analyst", f"s{os.getpid()}")
        while True:
            number = secrets.randbelow(60)
            sql = f"SELECT COUNT(*) FROM orders WHERE amount > {number}"
            session.execute(f"SET dpsql.epsilon = {secrets.choice(('0.05', '0.1'))}")
            reply = session.execute(sql)
            value, paid = reply.table.column(0)[0].as_py(), int(reply.cost.epsilon * NANO)
            os.write(answers, f"{number} {value} {int(reply.recalled)} {paid}\n".encode())


def sixteen_clients(store: str, place: str, schema: str, each: int, granted: int) -> None:
    """Sixteen threads ask; how often they were granted goes to ``granted``."""
    ledger = opened(store, place, schema)
    count = [0] * 16

    def client(mine: int) -> None:
        for number in range(each):
            try:
                hold = ledger.reserve(ACCOUNTS, ONE, [EVENT], NOTE, start=True)
            except OutOfBudget:
                continue
            count[mine] += 1
            if number % 4 == 0:
                ledger.commit(hold, {RecallKey(f"{os.getpid()}-{mine}-{number}"): b"answer"})

    threads = [threading.Thread(target=client, args=(mine,)) for mine in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.close()
    os.write(granted, b"%d\n" % sum(count))
