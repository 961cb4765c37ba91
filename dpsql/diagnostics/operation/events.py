"""Every event of the operator's log: one class each, with the fields in the order of the line.

Claim: no event holds a value of a row, a token or a password. Words of an analyst are in two fields only:
    a statement that failed, and a comment that an owner asks for.
Assumes: code that records an event fills the fields as the class describes them.
Argument: ``EVENTS`` lists all events, and a log writes nothing else. Fields are numbers, words of a
    closed list, names of the policy, and texts that clients choose before a query is read (a login,
    an address, an application). These texts are escaped and cut when a line is made (``lines``).
    Two texts depend on the words of analysts: ``Incident.statement``, the generated statement that
    failed, and ``Commented.comment``, which is logged only if the owner asks for it
    (``--log-comments``).

To record one, from any thread: ``record(LoginFailed(login=name, address=address, face="http"))``.
It never raises, and never waits for a disk.

Clients can cause some events as often as they like. The ``repeats`` of such an event is the field
that names its subject. After the first few hundred events of one subject, a log writes a few per
minute and counts the others (``Repeated``).
"""

from __future__ import annotations

import logging
import re
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

log = logging.getLogger("dpsql.operator")
log.addHandler(logging.NullHandler())  # without it, Python writes to standard error by default
Face = Literal["postgres", "http"]
Result = Literal["ok", "failed"]
Cause = Literal["cancel", "timeout", "disconnect", "terminate", "shutdown"]
Probe = Literal["ledger", "engine", "catalog", "lanes", "all"]
LONG = {"longest": 4_000}
"""The metadata of a field that may have more characters than other fields."""


@dataclass(frozen=True, slots=True)
class Event:
    """The base class of events."""

    level: ClassVar[int] = logging.INFO
    repeats: ClassVar[str | None] = None
    """The field that names the subject of the event, for the limit on repeated events.

    "" limits all events of the class together, and None does not limit them.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the event in the log and in the metrics.

        >>> LoginFailed.name()
        'login_failed'
        """
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()

    def __str__(self) -> str:
        """The event as a line."""
        from dpsql.diagnostics.operation.lines import words

        return words(self)


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The endpoint listens."""

    version: str
    address: str
    port: int
    http_port: int = 0
    """0 where HTTP is not answered."""


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """The endpoint has ended."""


@dataclass(frozen=True, slots=True)
class PolicyActive(Event):
    """A policy is in force as the endpoint begins."""

    database: str
    version: str


@dataclass(frozen=True, slots=True)
class DataStale(Event):
    """The data changed while its ``data_version`` did not. Stored answers are about the older data."""

    level: ClassVar[int] = logging.WARNING
    repeats: ClassVar[str | None] = ""
    database: str
    data_version: str


@dataclass(frozen=True, slots=True)
class Reloaded(Event):
    """A policy and its users were read again, and are in force."""

    database: str
    version: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ReloadFailed(Event):
    """A policy could not be used; the one before stays in force."""

    level: ClassVar[int] = logging.ERROR
    database: str
    version: str
    """The version of the policy that stays in force."""
    problem: str = field(metadata=LONG)
    """One of the problems with its place, as ``dpsql check`` prints it."""


@dataclass(frozen=True, slots=True)
class LoggedIn(Event):
    """Somebody has logged in over the PostgreSQL protocol."""

    repeats: ClassVar[str | None] = "login"
    connection: int
    login: str
    database: str
    application: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class LoginFailed(Event):
    """Somebody could not prove who they are."""

    level: ClassVar[int] = logging.WARNING
    repeats: ClassVar[str | None] = ""
    login: str
    """The login that the client gave; "" over HTTP, where a client sends only a token."""
    address: str
    face: Face
    database: str = ""


@dataclass(frozen=True, slots=True)
class Disconnected(Event):
    """A client that had logged in has gone."""

    repeats: ClassVar[str | None] = "login"
    connection: int
    login: str
    address: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ConnectionEnded(Event):
    """The server ended a connection over the PostgreSQL protocol; ``code`` is the SQLSTATE of the error."""

    repeats: ClassVar[str | None] = ""
    code: str
    login: str = ""
    """The login that the client gave, if it has given one."""


@dataclass(frozen=True, slots=True)
class HttpRequest(Event):
    """A request over HTTP was answered. ``path`` is "other" for a path that does not exist."""

    repeats: ClassVar[str | None] = "login"
    method: str
    path: str
    status: int
    milliseconds: float
    login: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class StatementRefused(Event):
    """A statement was refused: the DP code or SQLSTATE, and the character to which the refusal points."""

    repeats: ClassVar[str | None] = "login"
    code: str
    login: str
    face: Face
    connection: int = 0
    position: int = 0


@dataclass(frozen=True, slots=True)
class StatementStopped(Event):
    """A statement was stopped while it ran or waited."""

    repeats: ClassVar[str | None] = "login"
    cause: Cause
    login: str


@dataclass(frozen=True, slots=True)
class Commented(Event):
    """A statement had a comment in front of it (only with ``--log-comments``)."""

    level: ClassVar[int] = logging.DEBUG
    repeats: ClassVar[str | None] = "connection"
    connection: int
    comment: str


@dataclass(frozen=True, slots=True)
class Incident(Event):
    """An engine failed in a statement. The engine's message may quote rows, and is not kept."""

    level: ClassVar[int] = logging.ERROR
    repeats: ClassVar[str | None] = ""
    incident: str
    what: str
    kind: str
    statement: str = field(default="", metadata=LONG)


@dataclass(frozen=True, slots=True)
class Defect(Event):
    """A defect of dpsql: the class of the error, and the lines of code that it passed."""

    level: ClassVar[int] = logging.ERROR
    repeats: ClassVar[str | None] = ""
    incident: str
    kind: str
    where: str = field(metadata=LONG)


@dataclass(frozen=True, slots=True)
class LedgerUnusable(Event):
    """A question was not answered because the ledger could not be read or written."""

    level: ClassVar[int] = logging.ERROR
    repeats: ClassVar[str | None] = ""
    problem: str = field(metadata=LONG)
    """The problem, with the place of the ledger, which clients are not told."""
    instead: str = field(default="", metadata=LONG)
    """What the operator should do."""


@dataclass(frozen=True, slots=True)
class WorkerKilled(Event):
    """A process for catalog queries died, or was killed because it did not stop in time or took too much."""

    level: ClassVar[int] = logging.WARNING
    repeats: ClassVar[str | None] = ""


@dataclass(frozen=True, slots=True)
class ReadinessChanged(Event):
    """The endpoint has become ready, or is not ready any more."""

    level: ClassVar[int] = logging.WARNING
    repeats: ClassVar[str | None] = ""
    ready: Literal["yes", "no"]
    what: Probe = "all"


@dataclass(frozen=True, slots=True)
class Repeated(Event):
    """``count`` more events of one kind and subject came, and were not written one by one."""

    of: str
    subject: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LogResumed(Event):
    """The log can be written again. ``lost`` events are not in it."""

    level: ClassVar[int] = logging.WARNING
    lost: int


EVENTS: Mapping[str, type[Event]] = {
    kind.name(): kind
    for kind in (
        Started, Stopped, PolicyActive, DataStale, Reloaded, ReloadFailed, LoggedIn, LoginFailed, Disconnected,
        ConnectionEnded, HttpRequest, StatementRefused, StatementStopped, Commented, Incident, Defect, LedgerUnusable,
        WorkerKilled, ReadinessChanged, Repeated, LogResumed,
    )
}  # fmt: skip
"""All events, by name. The list in the README is generated from this mapping."""


class Counts:
    """The number of events of each kind in this process. Safe for threads."""

    def __init__(self) -> None:
        """All counts are 0."""
        self._lock, self._counts = threading.Lock(), Counter[str]()

    def add(self, name: str) -> None:
        """Count one event."""
        with self._lock:
            self._counts[name] += 1

    def all(self) -> dict[str, int]:
        """The counts of all kinds of events."""
        with self._lock:
            return {name: self._counts[name] for name in EVENTS}


COUNTS = Counts()


def record(event: Event) -> None:
    """Count an event, and pass it to the logger, which writes it if a log is kept."""
    COUNTS.add(event.name())
    log.log(event.level, "%s", event, extra={"event": event})
