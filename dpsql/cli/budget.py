"""``dpsql budget``: the limit, the spending and the rest of each account, and its guarantee."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from fractions import Fraction

from rich.table import Table
from rich.text import Text

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED
from dpsql.ledger.accounts import accounts_for
from dpsql.ledger.balance import Balance
from dpsql.ledger.charge import Charge
from dpsql.ledger.compare import charges, compare, promises
from dpsql.ledger.query_cap import cap_of
from dpsql.ledger.shortage import less, more
from dpsql.policy.model import Policy
from dpsql.service import Service
from dpsql.service.remaining import affordable

_BAR = 20


def run(chosen: argparse.Namespace) -> int:
    """Show the accounts of one role, or of all roles."""
    with Service.open(chosen.policy) as service:
        found = _balances(service, [chosen.role] if chosen.role else None, chosen.session)
        terminal.show(_accounts(found))
        sys.stdout.write("\nWhat one query costs\n")
        terminal.show(_queries(service.policy, found))
        sys.stdout.write("\nWhat the spending so far promises\n")
        terminal.show(_promises(found))
        if chosen.compare:
            spent = charges(service.ledger.events())
            sys.stdout.write("\nThe same queries, added up in other ways\n")
            terminal.show(_compared((b, spent.get(b.account.id, [])) for b in found))
    return ANSWERED


def _balances(service: Service, roles: list[str] | None, session: str) -> list[Balance]:
    now, tables = service.clock(), service.policy.tables
    found = {}
    for role in roles or service.policy.roles:
        seen = service.catalog(role).visible & tables.keys()
        for account in accounts_for(service.policy, role, session, seen, now=now):
            found[account.id] = account
    return list(service.ledger.balances(tuple(found.values())))


def _accounts(balances: Iterable[Balance]) -> Table:
    headers = ("account", "", "epsilon left", "", "delta left", "", "rho left", "", "renews")
    made = terminal.empty_table(headers, (2, 4, 6))
    for balance in balances:
        (epsilon, delta), (left, rest) = balance.total, balance.left
        made.add_row(
            terminal.plain(balance.account.title),
            bar(left, epsilon),
            less(left),
            terminal.mute_text(f"of {less(epsilon)}"),
            less(rest),
            terminal.mute_text(f"of {less(delta)}"),
            *_rho(balance),
            _renews(balance),
        )
    return made


def _rho(balance: Balance) -> tuple[Text, Text]:
    """What is left in rho, where the account composes in it."""
    if balance.rho is None or balance.left_rho is None:
        return terminal.plain(""), terminal.plain("")
    return terminal.plain(less(balance.left_rho)), terminal.mute_text(f"of {less(balance.rho[1])}")


def _queries(policy: Policy, balances: Iterable[Balance]) -> Table:
    """What a query for one number costs with each kind of noise, and how many a session allows."""
    headers = ("role", "noise", "epsilon", "delta", "rho", "in one session")
    made = terminal.empty_table(headers, (2, 3, 4, 5))
    for account in (b.account for b in balances):
        if account.holder != "session":
            continue
        role = policy.roles[account.role]
        for place, (noise, cost) in enumerate(cap_of(role).costs(role.mechanisms)):
            made.add_row(
                terminal.plain(account.role if place == 0 else ""),
                noise,
                more(cost.epsilon),
                more(cost.delta),
                more(cost.rho),
                f"{affordable(Balance(account, Charge()), Charge.of(cost)):,}",
            )
    return made


def _renews(balance: Balance) -> str:
    """When the account's window ends; until then a closed account admits nothing."""
    renews = balance.account.renews
    until = "never" if renews is None else f"{renews:%Y-%m-%d}"
    return f"{until} (closed)" if balance.closed else until


def bar(left: Fraction, total: Fraction) -> str:
    """A bar for the share of epsilon that is left. A rest above zero is never shown as zero.

    >>> bar(Fraction(1), Fraction(4)), bar(Fraction(0), Fraction(4)), bar(Fraction(0), Fraction(0))
    ('█████───────────────', '────────────────────', '────────────────────')
    """
    filled = 0 if not left or not total else max(1, int(_BAR * left / total))
    return "█" * filled + "─" * (_BAR - filled)


def _promises(balances: Iterable[Balance]) -> Table:
    """The guarantee of each account for one unit and for groups of units."""
    made = terminal.empty_table(("account", "to", "epsilon", "delta"), (2, 3))
    for balance in balances:
        for place, promise in enumerate(promises(balance)):
            units = "one unit" if promise.size == 1 else f"{promise.size} units together"
            nothing = promise.delta >= 1
            made.add_row(
                terminal.plain(balance.account.title if place == 0 else ""),
                units,
                "nothing" if nothing else _up(promise.epsilon),
                "" if nothing else _up(promise.delta),
            )
    return made


def _compared(found: Iterable[tuple[Balance, list[Charge]]]) -> Table:
    made = terminal.empty_table(
        ("account", "queries", "added up by", "epsilon", "delta"), (1, 3, 4)
    )
    for balance, spent in found:
        for place, way in enumerate(compare(balance.account, spent)):
            made.add_row(
                terminal.plain(balance.account.title if place == 0 else ""),
                str(len(spent)) if place == 0 else "",
                way.name,
                _up(way.epsilon),
                _up(way.delta),
            )
    return made


def _up(number: float) -> str:
    """Three digits, rounded up, without the safety margin that reports add in the twelfth digit."""
    return more(Fraction(f"{number:.9g}"))
