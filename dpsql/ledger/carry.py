"""Carries earlier spending into the windows that an edit of the policy begins.

An account is identified by its holder and its window. So an edit of ``per`` or ``time_zone`` begins
accounts without any spending, although their holders may have spent something since these windows
began.

Claim: after the edit, each account that was ever charged counts everything that its holder was
    charged since the present window began, whatever windows were debited then.
Argument: every hold that stays spent and was made since then is added, unless it debited the window
    itself. So is every amount that a restore added since then, of which only the time of the
    restore is known. An amount that an earlier edit carried into the same window is subtracted if
    all of it was spent since then; otherwise it counts twice.
Assumes: one policy at a time. A proxy that still serves the previous policy charges the windows of
    that policy.
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
    """The charge that a present window lacks, and when the window began ("" without a window)."""

    since: str
    charge: Charge


def shortfalls(db: Database, find: Find) -> dict[str, Shortfall]:
    """By identity, the part of the spending since it began that each present window lacks."""
    found: dict[str, Shortfall] = {}
    for created, accounts, charge in _spent(db):
        for account, since in _lacking(accounts, created, find):
            before = found.get(account, Shortfall(since, Charge()))
            found[account] = Shortfall(since, before.charge + charge)
    for account, since, charge in _carried(db):
        if account in found and since >= found[account].since:
            left = (found[account].charge - charge).numbers
            rest = Charge(*(max(0, number) for number in left))  # a hold may have been cancelled
            found[account] = found[account]._replace(charge=rest)
    return {account: lack for account, lack in found.items() if lack.charge != Charge()}


def carry(db: Database, find: Find) -> dict[str, object]:
    """Add what is missing to the accounts; returns the entries for the record of it."""
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
    """Time, accounts and amount of every charge, by holds and by restores."""
    for state, created, accounts, charge in rows.holds(db):
        if State(state).spent:
            yield created, accounts, charge
    for content in rows.of_owner(db):
        if content["owner"] == "restored":
            for account, numbers in content["added"].items():
                yield content["time"], [account], Charge(*numbers)


def _lacking(accounts: Sequence[str], created: str, find: Find) -> Iterable[tuple[str, str]]:
    """The present windows of these accounts that had begun by then and were not debited."""
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
