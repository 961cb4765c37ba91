"""``dpsql user``: manages the users who may log in to the endpoint under their own names."""

from __future__ import annotations

import argparse
import getpass
import sys

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED, Usage
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.serve import users

SHORTEST = 8


def run(chosen: argparse.Namespace) -> int:
    """Add, remove or list users; a running endpoint reads the file again on SIGHUP."""
    policy = load(chosen.policy)
    known = users.read(policy.front.users)
    if chosen.action == "list":
        for user in known.values():
            sys.stdout.write(f"{user.name}  role {user.role}\n")
        return ANSWERED
    if chosen.name is None:
        raise Usage(f"`dpsql user {chosen.action}` needs a name")
    if chosen.action == "remove":
        if chosen.name not in known:
            raise Usage(f'there is no user "{chosen.name}" in {policy.front.users}')
        del known[chosen.name]
    else:
        role = _role(policy, chosen.role)
        if chosen.name in policy.roles and chosen.name != role:
            raise Usage(f'"{chosen.name}" is the name of a role; choose another')
        if chosen.token:
            known[chosen.name], token = users.with_token(chosen.name, role)
            sys.stdout.write(f"{token}\n")
        else:
            known[chosen.name] = users.with_password(chosen.name, role, _password())
    users.write(policy.front.users, known.values())
    count = "1 user" if len(known) == 1 else f"{len(known)} users"
    terminal.say(
        f"{policy.front.users}: {count}; a server that runs reads them again at SIGHUP", sys.stderr
    )
    return ANSWERED


def _role(policy: Policy, wanted: str | None) -> str:
    if wanted is None and len(policy.roles) == 1:
        return next(iter(policy.roles))
    if wanted is None or wanted not in policy.roles:
        raise Usage(f"name a role with --role: {', '.join(policy.roles)}")
    return wanted


def _password() -> str:
    """The password: typed twice at a terminal, else the first line of standard input."""
    if sys.stdin.isatty():
        first = getpass.getpass("Password: ")
        if getpass.getpass("Again: ") != first:
            raise Usage("the two passwords differ")
    else:
        first = sys.stdin.readline().rstrip("\n")
    if len(first) < SHORTEST:
        raise Usage(f"a password has at least {SHORTEST} characters")
    return first
