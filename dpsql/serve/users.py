"""Reads and writes the file of users: their names, their roles, and their proofs.

Each user has one line ``name role proof``, separated by spaces. The proof is a SCRAM verifier, for
the PostgreSQL endpoint, or the hash of a token, for HTTP. Names and roles are percent-encoded.
Budgets belong to roles, so users of one role share its accounts.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from dpsql.diagnostics.quote import place
from dpsql.diagnostics.refusal import PolicyError
from dpsql.policy.model import Policy
from dpsql.serve.pgwire.scram import Verifier

_HEAD = "# name role proof; written by `dpsql user`\n"
MORE_ITERATIONS = 20_000
"""Iterations of new verifiers: more than usual, so that a stolen file is harder to use."""


@dataclass(frozen=True, slots=True)
class User:
    """A person or program that may log in, and the role as which it logs in."""

    name: str
    role: str
    verifier: Verifier | None
    token: str = ""
    """The hash of a token. A token is random enough to need no salt."""

    @property
    def proof(self) -> str:
        """The proof as it is written into the file."""
        return f"{_TOKEN}{self.token}" if self.verifier is None else str(self.verifier)


_TOKEN = "TOKEN-SHA-256$"  # noqa: S105 (a word, no secret)


def hash_token(token: str) -> str:
    """The hash of a token, which is kept instead of the token."""
    return hashlib.sha256(token.encode()).hexdigest()


def with_token(name: str, role: str) -> tuple[User, str]:
    """A user with a fresh token, and the token itself, which is stored nowhere."""
    token = secrets.token_urlsafe(32)
    return User(name, role, None, hash_token(token)), token


def with_password(name: str, role: str, password: str) -> User:
    """A user with a verifier of this password, under a fresh salt."""
    verifier = Verifier.of(password, secrets.token_bytes(16), MORE_ITERATIONS)
    return User(name, role, verifier)


def read(path: Path) -> dict[str, User]:
    """The users of a file by name; none if there is no file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeError:
        raise PolicyError(f"{place(path)}:1: this is not text; `dpsql user` writes it") from None
    found: dict[str, User] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            user = _line(line)
            if user is None or user.name in found:
                why = "is not `name role proof`" if user is None else "repeats a name"
                raise PolicyError(
                    f"{place(path)}:{number}: this line {why}; `dpsql user` writes them"
                )
            found[user.name] = user
    return found


def _line(line: str) -> User | None:
    parts = line.split()
    if len(parts) != 3:
        return None
    verifier = Verifier.parse(parts[2])
    token = re.fullmatch(re.escape(_TOKEN) + "([0-9a-f]{64})", parts[2])
    if verifier is None and token is None:
        return None
    return User(unquote(parts[0]), unquote(parts[1]), verifier, token[1] if token else "")


def write(path: Path, users: Iterable[User]) -> None:
    """Replace the file by one with these users. It is readable by its owner only.

    The file is replaced as a whole, so it is never half written.
    """
    lines = [f"{quote(u.name, safe='')} {quote(u.role, safe='')} {u.proof}\n" for u in users]
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 (a handle)
        file.write(_HEAD + "".join(lines))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def of(policy: Policy, known: Mapping[str, Verifier]) -> dict[str, User]:
    """All users who may log in: those of the file, and the roles that have a verifier.

    A user must not have the name of another role, and its role must be in the policy.
    """
    found = {name: User(name, name, verifier) for name, verifier in known.items()}
    for user in read(policy.front.users).values():
        if user.role not in policy.roles:
            raise PolicyError(
                f'{place(policy.front.users)}: the role "{user.role}" of user "{user.name}" is not in the '
                f"policy; known are {', '.join(policy.roles)}"
            )
        if user.name in policy.roles and user.name != user.role:
            raise PolicyError(
                f'{place(policy.front.users)}: the user "{user.name}" has the name of a role that it is not; '
                "choose another name"
            )
        found[user.name] = user
    return found
