"""What the connections of one endpoint have in common: limits, workers, and who is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import TYPE_CHECKING

from dpsql.policy.model import Bounds
from dpsql.serve.memory import give_back
from dpsql.serve.pgwire.asking import TIMED, Ask, Backend, Prove, RunOwn
from dpsql.serve.pgwire.crowd import Seen
from dpsql.serve.pgwire.errors import TOO_MANY, Fatal
from dpsql.serve.pgwire.frames import LARGEST_MESSAGE
from dpsql.serve.pgwire.startup import House

if TYPE_CHECKING:
    from dpsql.serve.pgwire.connection import Connection


@dataclass(frozen=True, slots=True)
class Limits:
    """What one endpoint bears."""

    connections: int = 1_000
    connections_per_role: int = 800
    startup_seconds: float = 15.0
    idle_seconds: float = 0.0
    """0: a session may be idle for ever."""
    send_seconds: float = 60.0
    """For so long a client may take nothing of what is sent to it."""
    largest_message: int = LARGEST_MESSAGE
    drain_seconds: float = 30.0

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
class Room:
    """What the connections of one endpoint have in common."""

    house: House
    workers: Executor
    light: Executor
    """For what is soon done: long statements do not keep it waiting."""
    proofs: Executor
    """For passwords of whoever knocks: they keep nobody waiting that is inside."""
    limits: Limits
    clock: Callable[[], float]
    """Seconds since 1970."""
    tls: SSLContext | None = None
    open: set[Connection] = field(default_factory=set)
    keys: dict[int, Connection] = field(default_factory=dict)
    draining: bool = False
    tidying: bool = False
    compare: Callable[[bytes, bytes], bool] = lambda a, b: a == b

    def admit(self, home: House, user: str) -> int:
        """The largest message of a role; refused when it has as many connections as it may."""
        wanted = home.admission(user)
        machines = [c.machine for c in self.open if c.machine.session is not None]
        entered = [m.role for m in machines if m.home is home]
        inside = [u for u in entered if home.admission(u).role == wanted.role]
        most = wanted.access.connections or self.limits.connections_per_role
        if len(inside) >= most:
            raise Fatal(TOO_MANY, f'too many connections for role "{wanted.role}"')
        return wanted.access.message_bytes or self.limits.largest_message

    def lane(self, ask: Ask, backend: Backend) -> Executor:
        """Which workers carry out a request."""
        if isinstance(ask, Prove):
            return self.proofs
        if isinstance(ask, TIMED):
            return self.light if backend.light(ask.query) else self.workers
        return self.workers if isinstance(ask, RunOwn) else self.light

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

    def tidy(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give back what large answers took, once for all that end in the same second."""
        if not self.tidying:
            self.tidying = True
            loop.call_later(1.0, self._tidy)

    def _tidy(self) -> None:
        self.tidying = False
        if not self.draining:
            self.workers.submit(give_back)
