"""Who logs in under a name of their own: a file of names, roles and SCRAM verifiers.

One line for each: ``name role verifier``, with spaces between. Names are percent-encoded where they
hold spaces. Budgets belong to roles: users of one role share its accounts.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from dpsql.diagnostics.refusal import PolicyError
from dpsql.policy.model import Policy
from dpsql.serve.pgwire.scram import Verifier

_HEAD = "# name role verifier; written by `dpsql user`\n"
MORE_ITERATIONS = 20_000
"""Of new verifiers; a stolen file is that much harder to use."""


@dataclass(frozen=True, slots=True)
class User:
    """Someone who may log in, and as which role."""

    name: str
    role: str
    verifier: Verifier


def made(name: str, role: str, password: str) -> User:
    """A user with a fresh salt."""
    verifier = Verifier.of(password, secrets.token_bytes(16), MORE_ITERATIONS)
    return User(name, role, verifier)


def read(path: Path) -> dict[str, User]:
    """The users of a file, by name; nobody when there is no file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    found: dict[str, User] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            user = _line(line)
            if user is None or user.name in found:
                why = "is not `name role verifier`" if user is None else "repeats a name"
                raise PolicyError(f"{path}:{number}: this line {why}; `dpsql user` writes them")
            found[user.name] = user
    return found


def _line(line: str) -> User | None:
    parts = line.split()
    verifier = Verifier.parse(parts[2]) if len(parts) == 3 else None
    return None if verifier is None else User(unquote(parts[0]), unquote(parts[1]), verifier)


def write(path: Path, users: Iterable[User]) -> None:
    """All users at once, for the owner's eyes only; the file is never half written."""
    lines = [f"{quote(u.name, safe='')} {quote(u.role, safe='')} {u.verifier}\n" for u in users]
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 (a handle)
        file.write(_HEAD + "".join(lines))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def of(policy: Policy, known: Mapping[str, Verifier]) -> dict[str, User]:
    """Everyone who may log in: the users of the file, and the roles that have a verifier.

    A user must not have the name of another role, and its role must be in the policy.
    """
    found = {name: User(name, name, verifier) for name, verifier in known.items()}
    for user in read(policy.front.users).values():
        if user.role not in policy.roles:
            raise PolicyError(
                f'{policy.front.users}: the role "{user.role}" of user "{user.name}" is not in the '
                f"policy; known are {', '.join(policy.roles)}"
            )
        if user.name in policy.roles and user.name != user.role:
            raise PolicyError(
                f'{policy.front.users}: the user "{user.name}" has the name of a role that it is not; '
                "choose another name"
            )
        found[user.name] = user
    return found
