"""A connection's address, and the times that pg_stat_activity shows of its session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dpsql.serve.pgwire.crowd import Seen
from dpsql.serve.pgwire.machine import Machine
from dpsql.serve.pgwire.transaction import RESTING


class Presence:
    """The address and the times of one connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """The connection begins now."""
        self._loop = loop
        self._begun = self._changed = loop.time()
        self._woken: float | None = None
        self.peer: object = None

    @property
    def seconds(self) -> float:
        """The seconds since the connection began."""
        return self._loop.time() - self._begun

    @property
    def address(self) -> str:
        """The client's address, as events of its log-in have it."""
        return str(self.peer[0]) if isinstance(self.peer, tuple) and self.peer else ""

    def wake(self) -> None:
        """Note that an idle client has sent something."""
        self._woken = self._changed = self._loop.time()

    def rest(self) -> None:
        """Note that no statement of the client is carried out any more."""
        self._changed = self._loop.time()

    def describe(self, machine: Machine, clock: Callable[[], float]) -> Seen | None:
        """The connection as pg_stat_activity shows it; None before the log-in.

        ``clock`` gives seconds since 1970.
        """
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
