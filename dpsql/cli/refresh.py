"""``dpsql refresh``: new data under a new ``data_version``, after the checks of ``dpsql check``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import date

from dpsql.cli import terminal
from dpsql.cli.compared import ComparedData, compare_data
from dpsql.cli.exits import ANSWERED, Usage
from dpsql.cli.opened import clock, open_existing_ledger, operator_log
from dpsql.engines.duckdb import copies
from dpsql.ledger.accounts import accounts_for
from dpsql.ledger.data_notes import DataState, compare_with_note, note_of
from dpsql.ledger.shortage import more
from dpsql.ledger.store import Ledger
from dpsql.policy.edit import write_data_version
from dpsql.policy.load import load
from dpsql.policy.model import Policy

LONGEST = 100
"""The most characters of a data version that is given on the command line."""


def run(chosen: argparse.Namespace) -> int:
    """Renew what depends on the data, if the data changed, and say what happens to the rest.

    The policy's file comes first: if this is killed afterwards, the next opening notes the data.
    """
    policy = load(chosen.policy)
    _check_version(chosen.data_version)
    with operator_log(chosen.policy), ExitStack() as opened:
        found = compare_data(policy)
        ledger = open_existing_ledger(policy)
        if ledger is not None:
            opened.enter_context(closing(ledger))
        for line in _refresh(found, ledger, chosen):
            terminal.say(line, sys.stdout)
    return ANSWERED


def _refresh(found: ComparedData, ledger: Ledger | None, chosen: argparse.Namespace) -> list[str]:
    """The sentences that say what was done."""
    policy, version = found.policy, found.policy.data_version
    state = DataState.NEW
    if ledger is not None:
        state = compare_with_note(ledger, version, found.content)
    before = ""
    if state is DataState.NEW and ledger is not None and _was_served(ledger, version):
        state = DataState.CHANGED
        before = f'an earlier dpsql did not note the data of data_version "{version}": it is taken for other data'
    if ledger is None or state is not DataState.CHANGED:
        why = (
            f'nothing was served under data_version "{version}" yet'
            if state is DataState.NEW
            else f'the data is what was first served under data_version "{version}"'
        )
        if chosen.data_version is not None:
            raise Usage(f"{why}, so it stays; leave out --data-version, or edit the policy")
        said = [f"{why}, and it stays"]
    elif chosen.same_rows:
        _note(ledger, version, found.content, "data noted, with the same rows")
        stay = f'data_version "{version}" and stored answers stay'
        said = [f"{stay}; the ledger notes your word that the rows are the same"]
    else:
        version = chosen.data_version or next_version(
            version, clock().date(), lambda v: ledger.data_note(v) is not None
        )
        said = _renew(policy, ledger, version, found.content)
    return [
        *([before] if before else []),
        *said,
        *_prepare(replace(policy, data_version=version), found),
    ]


def _was_served(ledger: Ledger, version: str) -> bool:
    """Whether the terms that were noted last have this data version."""
    return (ledger.terms() or {}).get("data_version") == version


def _renew(policy: Policy, ledger: Ledger, version: str, content: str) -> list[str]:
    """Write the new version into the policy and the ledger."""
    state = compare_with_note(ledger, version, content)
    if state is DataState.CHANGED:
        raise Usage(f'other data was served under data_version "{version}"; choose another one')
    write_data_version(policy, version)
    if state is DataState.NEW:
        _note(ledger, version, content, "data noted")
    old = policy.data_version
    again = " Those of this data, served before, are used again." if state is DataState.SAME else ""
    return [
        f'{policy.path.name}: data_version was "{old}" and is "{version}" now',
        f'stored answers of "{old}" are not used any more: who asks again, pays again.{again}',
        f"budgets stay as they are: {_spent(policy, ledger)}",
        "a server that runs now answers from the older data, or not at all: start it again",
    ]


def _note(ledger: Ledger, version: str, content: str, about: str) -> None:
    terms = ledger.terms()
    assert terms is not None, "a ledger with a note of the data has terms"
    ledger.note_terms(terms, about, data=note_of(ledger, version, content))


def _spent(policy: Policy, ledger: Ledger) -> str:
    """What is spent of the data set's account."""
    role = next(iter(policy.roles))
    found = ledger.balances(accounts_for(policy, role, now=clock()))
    [dataset] = [b for b in found if b.account.holder == "dataset"]
    epsilon, delta = map(more, dataset.guarantee)
    whole = terminal.spent(*dataset.total)
    return f"epsilon {epsilon} and delta {delta} are spent of {whole} of the data set"


def _prepare(policy: Policy, found: ComparedData) -> list[str]:
    """Write prepared copies anew, if there are any that are not read under this policy."""
    same = policy.data_version == found.policy.data_version
    if not found.copied or (same and not found.unprepared):
        return []
    copies.prepare(policy, found.copied)
    return [f"prepared copies are written anew: {', '.join(found.copied)}"]


def next_version(old: str, today: date, used: Callable[[str], bool]) -> str:
    """The data version after ``old``: the next whole number, or else the date.

    >>> next_version("7", date(2026, 11, 2), lambda version: version == "8")
    '9'
    >>> next_version("2026-11-01", date(2026, 11, 2), lambda version: False)
    '2026-11-02'
    >>> next_version("2026-11-02", date(2026, 11, 2), lambda version: version == "2026-11-02")
    '2026-11-02.2'
    """
    number = int(old) if old.isdecimal() and old.isascii() and len(old) <= 9 else None
    step, found = 1, today.isoformat() if number is None else str(number + 1)
    while used(found) or found == old:
        step += 1
        found = f"{today.isoformat()}.{step}" if number is None else str(number + step)
    return found


def _check_version(version: str | None) -> None:
    if version is not None and not (0 < len(version) <= LONGEST and version.isprintable()):
        raise Usage(f"--data-version takes a text of at most {LONGEST} printable characters")
