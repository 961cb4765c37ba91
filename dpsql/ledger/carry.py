"""What was spent before an edit of windows, in the windows that the edit begins.

An account is known by its holder and its window. So an edit of ``per`` or ``time_zone`` begins
accounts in which nothing is spent, although something was since their windows began.

Claim: after the edit, each account that was ever charged counts all that its holder was charged since the
    present window began, under whatever windows that was.
Argument: each hold that stays spent and was made since then is added, unless the window itself was debited;
    so is what a restore added since then, of which only that time is known. What an earlier edit carried into the
    same window is left out, where all of it was spent since then; otherwise it counts twice.
Assumes: one policy at a time. A proxy that still serves the policy before charges its windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dpsql.ledger import rows
from dpsql.ledger.accounts import Find
from dpsql.ledger.charge import Charge
from dpsql.ledger.rows import Database
from dpsql.ledger.states import State


class Shortfall(NamedTuple):
    """What a present window lacks, and when it began ("": it has always been)."""

    since: str
    charge: Charge


def shortfalls(db: Database, find: Find) -> dict[str, Shortfall]:
    """What each present window lacks of what was spent since it began, by its identity."""
    found: dict[str, Shortfall] = {}
    for created, accounts, charge in _spent(db):
        for account, since in _lacking(accounts, created, find):
            before = found.get(account, Shortfall(since, Charge()))
            found[account] = Shortfall(since, before.charge + charge)
    for account, since, charge in _carried(db):
        if account in found and since >= found[account].since:
            left = (found[account].charge - charge).numbers
            rest = Charge(*(max(0, number) for number in left))  # a hold may be cancelled since
            found[account] = found[account]._replace(charge=rest)
    return {account: lack for account, lack in found.items() if lack.charge != Charge()}


def carry(db: Database, find: Find) -> dict[str, object]:
    """Add what is missing; what a record says of it."""
    lacking, spent = shortfalls(db, find), rows.all_spent(db)
    before = {account: spent.get(account, Charge()) for account in lacking}
    rows.set_spent(db, {a: (before[a], before[a] + lack.charge) for a, lack in lacking.items()})
    if not lacking:
        return {}
    return {
        "added": {account: lack.charge.numbers for account, lack in lacking.items()},
        "carried": {account: lack.since for account, lack in lacking.items()},
    }


def _spent(db: Database) -> Iterator[tuple[str, Sequence[str], Charge]]:
    """When what was charged to which accounts: by holds, and by restores."""
    for state, created, accounts, charge in rows.holds(db):
        if State(state).spent:
            yield created, accounts, charge
    for content in rows.of_owner(db):
        if content["owner"] == "restored":
            for account, numbers in content["added"].items():
                yield content["time"], [account], Charge(*numbers)


def _lacking(accounts: Sequence[str], created: str, find: Find) -> Iterable[tuple[str, str]]:
    """The present windows of these accounts that were not debited, though they had begun."""
    for account in accounts:
        present = find(account.partition("@")[0])
        if present is not None and present.id not in accounts:
            since = "" if present.begins is None else rows.utc(present.begins)
            if created >= since:
                yield present.id, since


def _carried(db: Database) -> Iterator[tuple[str, str, Charge]]:
    for content in rows.of_owner(db):
        for account, since in content.get("carried", {}).items():
            yield account, since, Charge(*content["added"][account])
