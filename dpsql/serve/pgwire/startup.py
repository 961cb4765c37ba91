"""The start of a connection: start-up parameters, protocol versions, log-in."""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dpsql.policy.model import Access
from dpsql.serve.pgwire import replies
from dpsql.serve.pgwire.asking import Ask, Backend, Prove, Wait
from dpsql.serve.pgwire.crowd import Place
from dpsql.serve.pgwire.errors import AUTHORIZATION, PASSWORD, PROTOCOL, TOO_MANY, Fatal
from dpsql.serve.pgwire.messages import NEWEST_MINOR, Startup, decode_text
from dpsql.serve.pgwire.scram import Exchange, Verifier
from dpsql.serve.pgwire.variables import Variables
from dpsql.serve.throttle import Attempt, TooMany

_LONG_KEY, _SHORT_KEY = 32, 4


@dataclass(frozen=True, slots=True)
class Admission:
    """The limits of a user's connections; None in ``access`` leaves a limit to the endpoint."""

    role: str
    access: Access
    policy: str = ""
    """The path of the policy, since another policy may have a role or user of the same name."""


class Endpoint(Protocol):
    """The operations of an endpoint that a connection needs."""

    encrypts: bool
    requires_tls: bool
    binding: bytes | None

    @property
    def cleartext(self) -> bool:
        """Whether clients may send passwords in clear text over TLS."""
        ...

    def at(self, database: str) -> Endpoint:
        """The endpoint of a database."""
        ...

    def verifier(self, role: str) -> tuple[Verifier, bool]:
        """The verifier of a user, and whether there is such a user."""
        ...

    def enter(self, role: str, database: str, session: str, place: Place) -> Backend:
        """Open a session of a user after a right proof. Raises the error that the client gets."""
        ...

    def admission(self, user: str) -> Admission:
        """The limits that the policy sets on a user's connections."""
        ...

    def process(self) -> int:
        """A number for a new connection."""
        ...

    def random(self, count: int) -> bytes:
        """Unpredictable bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """The login, the database and the settings that a client asked for when it connected."""

    role: str
    database: str
    session: str
    settings: Mapping[str, str]
    minor: int


_WORD = re.compile(r"(?:\\.|[^\s\\])+", re.DOTALL)
_SETTING = re.compile(r"((?:\\.|[^=\\])+)=(.*)", re.DOTALL)
_NOT_SETTINGS = frozenset({"user", "database", "options", "replication"})


def read_start_parameters(startup: Startup) -> Wanted:
    """Read the start-up parameters. Only the option dpsql.session chooses an account."""
    given = startup.parameters
    role = given.get("user", "")
    if not role:
        raise Fatal(AUTHORIZATION, "no PostgreSQL user name specified in startup packet")
    if given.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise Fatal("0A000", "replication connections are not supported")
    options = _options(given.get("options", ""))
    settings = {
        name.lower(): value
        for name, value in given.items()
        if name not in _NOT_SETTINGS and not name.startswith("_pq_.")
    }
    session = options.pop("dpsql.session", "default") or "default"
    return Wanted(
        role, given.get("database") or role, session, {**settings, **options}, startup.minor
    )


def _options(text: str) -> dict[str, str]:
    """Read settings in the form of a command line: ``-c name=value`` and ``--name=value``."""
    found: dict[str, str] = {}
    is_setting = False
    for word in _WORD.findall(text):
        setting = _SETTING.fullmatch(word if is_setting else word[2:])
        if setting is not None and (is_setting or word.startswith(("-c", "--"))):
            found[_plain(setting[1]).lower().replace("-", "_")] = _plain(setting[2])
        is_setting = word == "-c" and not is_setting
    return found


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def negotiation(startup: Startup) -> bytes:
    """The message that names the supported version; empty if the client's is supported."""
    unknown = [name for name in startup.parameters if name.startswith("_pq_.")]
    if startup.minor <= NEWEST_MINOR and not unknown:
        return b""
    return replies.negotiate(min(startup.minor, NEWEST_MINOR), unknown)


class Login:
    """One log-in. An unknown user goes through the same steps as others, and fails at the end."""

    def __init__(self, endpoint: Endpoint, asked: Wanted, *, encrypted: bool) -> None:
        """``asked`` has the login that the client claims."""
        verifier, self._exists = endpoint.verifier(asked.role)
        nonce = endpoint.random(18).hex()
        self._exchange = Exchange(verifier, nonce, endpoint.binding if encrypted else None)
        self._role, self._begun = asked.role, False
        self._verifier = verifier
        self._cleartext = encrypted and endpoint.cleartext

    def offer(self) -> bytes:
        """Offer the SCRAM mechanisms; or ask for the password, if TLS and the policy allow it."""
        if self._cleartext:
            return replies.CLEARTEXT
        return replies.sasl(self._exchange.mechanisms)

    @property
    def awaits_proof(self) -> bool:
        """Whether the next message of the client is its proof."""
        return self._cleartext or self._begun

    def step(self, body: bytes) -> Generator[Ask, Any, tuple[bytes, bool]]:
        """Answer a message of the client. The second value is True after a right proof."""
        if self._cleartext:
            return (yield from self._password(body)), True
        if not self._begun:
            self._begun = True
            name, _, rest = body.partition(b"\0")
            length = int.from_bytes(rest[:4], "big", signed=True)
            if length != len(rest) - 4:
                raise Fatal(PROTOCOL, "malformed SCRAM message")
            return replies.sasl_continue(self._exchange.first(decode_text(name), rest[4:])), False
        proof = self._exchange.final(body)
        if proof is None or not self._exists:
            raise self._wrong()
        return replies.sasl_final(proof) + replies.AUTHENTICATED, True

    def _password(self, body: bytes) -> Generator[Ask, Any, bytes]:
        """Hash a password as SCRAM does, and compare it. An unknown user takes the same work."""
        if not body.endswith(b"\0"):
            raise Fatal(PROTOCOL, "malformed password message")
        fits = yield Prove(self._verifier, decode_text(body[:-1]))
        if not fits or not self._exists:
            raise self._wrong()
        return replies.AUTHENTICATED

    def _wrong(self) -> Fatal:
        return Fatal(PASSWORD, f'password authentication failed for user "{self._role}"')


def variables(asked: Wanted) -> Variables:
    """The session's variables. A setting that is refused ends the log-in, as in PostgreSQL."""
    found = Variables(asked.role)
    for name, value in asked.settings.items():
        if name.startswith("dpsql.") and name != "dpsql.notices":
            continue
        found.begin(name, value)
    return found


def own_settings(asked: Wanted) -> list[str]:
    """The SET statements that options such as ``-c dpsql.epsilon=0.1`` stand for."""
    return [
        f"SET {name} = '{value.replace(chr(39), chr(39) * 2)}'"
        for name, value in asked.settings.items()
        if name.startswith("dpsql.") and name != "dpsql.notices"
    ]


def cancel_key(endpoint: Endpoint, minor: int) -> bytes:
    """A random key, with which the client proves that a cancel request is its own."""
    return endpoint.random(_SHORT_KEY if minor < NEWEST_MINOR else _LONG_KEY)


def wait_in_queue(attempt: Attempt) -> Generator[Wait, None, None]:
    """Wait for the delay of earlier failures. If too many wait already, refuse without a check."""
    try:
        seconds = attempt.queue()
    except TooMany as full:
        hint = f"Try again in {math.ceil(full.seconds)} s."
        raise Fatal(TOO_MANY, "too many log-ins are waiting after failed ones", hint=hint) from None
    if seconds:
        yield Wait(seconds)
