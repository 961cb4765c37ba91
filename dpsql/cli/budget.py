"""``dpsql budget``: what each account has left."""

from __future__ import annotations

import argparse

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED
from dpsql.service import Remaining, Service


def run(chosen: argparse.Namespace) -> int:
    """The accounts of one role, or of all."""
    with Service.open(chosen.policy) as service:
        roles = [chosen.role] if chosen.role else list(service.policy.roles)
        found: list[Remaining] = []
        for role in roles:
            accounts = service.session(role, chosen.session).budget()
            found += [account for account in accounts if account not in found]
    terminal.show(terminal.accounts(found))
    return ANSWERED
