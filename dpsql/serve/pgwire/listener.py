"""What the connections of one endpoint have in common: limits, lanes, and who is there."""

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
"""Characters in which the first word of a command is looked for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one endpoint bears."""

    connections: int = 1_000
    """Of those who have logged in."""
    connections_per_role: int = 800
    startup_seconds: float = 15.0
    idle_seconds: float = 0.0
    """0: a session may be idle for ever."""
    send_seconds: float = 60.0
    """For so long a client may take nothing of what is sent to it."""
    largest_message: int = LARGEST_MESSAGE
    drain_seconds: float = 4.0
    """For so long statements go on when the endpoint is told to stop; then they are stopped."""

    @classmethod
    def of(cls, bounds: Bounds) -> Limits:
        """As a policy has them."""
        return cls(
            connections=bounds.connections,
            startup_seconds=bounds.startup_seconds,
            idle_seconds=bounds.idle_seconds or 0.0,
            send_seconds=bounds.send_seconds,
            largest_message=bounds.message_bytes,
        )


@dataclass(slots=True)
class Listener:
    """What the connections of one endpoint have in common."""

    endpoint: Endpoint
    traffic: Traffic
    limits: Limits
    clock: Callable[[], float]
    """Seconds since 1970."""
    tls: SSLContext | None = None
    open: set[Connection] = field(default_factory=set)
    keys: dict[int, Connection] = field(default_factory=dict)
    compare: Callable[[bytes, bytes], bool] = lambda a, b: a == b

    def admit(self, home: Endpoint, user: str) -> int:
        """The largest message of a role; refused when there are as many connections as there may be."""
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
        """Which threads carry out a request; None where that is not seen at once."""
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
        """What is set or shown keeps nobody waiting; EXPLAIN plans as a query does."""
        words = text[:_FIRST_WORD].lower().split()
        match words[0] if words else "":
            case "set" | "reset":
                return self.traffic.light
            case "show":
                return self.traffic.catalog
            case _:
                return self.traffic.data

    def login(self, home: Endpoint, user: str) -> tuple[str, str]:
        """Whose turn it is that something of this user is done: the same over every face."""
        return home.admission(user).policy, user

    def seen(self) -> list[Seen]:
        """Every session that has logged in."""
        return [seen for c in list(self.keys.values()) if (seen := c.seen()) is not None]

    def holds(self, process: int) -> bool:
        """Whether a session has this number."""
        return process in self.keys

    def stop(self, process: int, *, ends: bool) -> None:
        """Cancel what a session runs, or end it. Said by a worker, done by the loop."""
        found = self.keys.get(process)
        if found is not None:
            found.stop(ends=ends)
