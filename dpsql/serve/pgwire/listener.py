"""The parts that all connections of one endpoint share: limits, lanes, and the open sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import TYPE_CHECKING

from dpsql.policy.model import Bounds
from dpsql.serve.lanes import Lane
from dpsql.serve.pgwire.asking import TIMED, Ask, Backend, Prove, RunOwn
from dpsql.serve.pgwire.crowd import Seen
from dpsql.serve.pgwire.errors import TOO_MANY, Fatal
from dpsql.serve.pgwire.frames import LARGEST_MESSAGE
from dpsql.serve.pgwire.startup import Endpoint
from dpsql.serve.traffic import Traffic

if TYPE_CHECKING:
    from dpsql.serve.pgwire.connection import Connection

_FIRST_WORD = 100
"""The number of characters in which the first word of a command is looked for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one endpoint."""

    connections: int = 1_000
    """The most connections that have logged in."""
    connections_per_role: int = 800
    startup_seconds: float = 15.0
    idle_seconds: float = 0.0
    """The longest time for which a session may be idle; 0 for any time."""
    send_seconds: float = 60.0
    """The longest time in which a client may receive nothing of what is sent to it."""
    largest_message: int = LARGEST_MESSAGE
    drain_seconds: float = 4.0
    """The time for which statements go on when the endpoint ends, before they are stopped."""

    @classmethod
    def of(cls, bounds: Bounds) -> Limits:
        """The limits that a policy sets."""
        return cls(
            connections=bounds.connections,
            startup_seconds=bounds.startup_seconds,
            idle_seconds=bounds.idle_seconds or 0.0,
            send_seconds=bounds.send_seconds,
            largest_message=bounds.message_bytes,
        )


@dataclass(slots=True)
class Listener:
    """The parts that all connections of one endpoint share."""

    endpoint: Endpoint
    traffic: Traffic
    limits: Limits
    clock: Callable[[], float]
    """Returns the time in seconds since 1970."""
    tls: SSLContext | None = None
    open: set[Connection] = field(default_factory=set)
    keys: dict[int, Connection] = field(default_factory=dict)
    compare: Callable[[bytes, bytes], bool] = lambda a, b: a == b

    def admit(self, home: Endpoint, user: str) -> int:
        """The size of the largest message of a user. Refused if there are too many connections."""
        wanted = home.admission(user)
        machines = [c.machine for c in self.open if c.machine.session is not None]
        if len(machines) >= self.limits.connections:
            raise Fatal(TOO_MANY, "sorry, too many clients already")
        entered = [m.role for m in machines if m.home is home]
        inside = [u for u in entered if home.admission(u).role == wanted.role]
        most = wanted.access.connections or self.limits.connections_per_role
        if len(inside) >= most:
            raise Fatal(TOO_MANY, f'too many connections for role "{wanted.role}"')
        return wanted.access.message_bytes or self.limits.largest_message

    def lane(self, ask: Ask, backend: Backend, *, at_once: bool) -> Lane | None:
        """The lane that carries out a request; None if ``at_once`` is set and that is not known."""
        if isinstance(ask, Prove):
            return self.traffic.proofs
        if isinstance(ask, RunOwn):
            return self._own(ask.text)
        if not isinstance(ask, TIMED):
            return self.traffic.light
        light = backend.light(ask.query, at_once=at_once)
        if light is None:
            return None
        return self.traffic.catalog if light else self.traffic.data

    def _own(self, text: str) -> Lane:
        """The lane of one of dpsql's own commands. EXPLAIN plans as a query does."""
        words = text[:_FIRST_WORD].lower().split()
        match words[0] if words else "":
            case "set" | "reset":
                return self.traffic.light
            case "show":
                return self.traffic.catalog
            case _:
                return self.traffic.data

    def login(self, home: Endpoint, user: str) -> tuple[str, str]:
        """The login by which lanes and loop give turns to a user: the same over all faces."""
        return home.admission(user).policy, user

    def seen(self) -> list[Seen]:
        """All sessions that have logged in."""
        return [seen for c in list(self.keys.values()) if (seen := c.seen()) is not None]

    def holds(self, process: int) -> bool:
        """Whether a session has this number."""
        return process in self.keys

    def stop(self, process: int, *, ends: bool) -> None:
        """Cancel the statement of a session, or end the session.

        A thread of a lane calls this, and the event loop does it.
        """
        found = self.keys.get(process)
        if found is not None:
            found.stop(ends=ends)
