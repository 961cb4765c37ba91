"""Where a client comes from, and when its session did what, as pg_stat_activity shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dpsql.serve.pgwire.crowd import Seen
from dpsql.serve.pgwire.machine import Machine
from dpsql.serve.pgwire.transaction import RESTING


class Presence:
    """Of one connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """It begins now."""
        self._loop = loop
        self._begun = self._changed = loop.time()
        self._woken: float | None = None
        self.peer: object = None

    @property
    def seconds(self) -> float:
        """For how long it has been there."""
        return self._loop.time() - self._begun

    @property
    def address(self) -> str:
        """Where the client is, as its log-in is told of."""
        return str(self.peer[0]) if isinstance(self.peer, tuple) and self.peer else ""

    def wake(self) -> None:
        """A client that was at rest has sent something."""
        self._woken = self._changed = self._loop.time()

    def rest(self) -> None:
        """Nothing is being carried out for it."""
        self._changed = self._loop.time()

    def describe(self, machine: Machine, clock: Callable[[], float]) -> Seen | None:
        """What is shown of it, once it has logged in; ``clock`` gives seconds since 1970."""
        session = machine.session
        if session is None or machine.key is None:
            return None
        shift = clock() - self._loop.time()
        peer = self.peer if isinstance(self.peer, tuple) and self.peer else None
        address, port = (str(peer[0]), int(peer[1])) if peer else (None, None)
        return Seen(
            machine.key[0], machine.role, session.backend.taken, machine.database,
            session.variables.get("application_name"), address, port, shift + self._begun,
            None if self._woken is None else shift + self._woken, shift + self._changed,
            RESTING[session.transaction.status] if machine.idle else "active",
            session.asked, machine.home,
        )  # fmt: skip
