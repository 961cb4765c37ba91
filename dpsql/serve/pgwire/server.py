"""The PostgreSQL server. It listens, makes connections, and ends within seconds of a signal."""

from __future__ import annotations

import asyncio
import hmac
import signal
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from ssl import SSLContext

from dpsql.serve.draining import Face, drain
from dpsql.serve.pgwire.connection import Connection
from dpsql.serve.pgwire.listener import Limits, Listener
from dpsql.serve.pgwire.startup import Endpoint
from dpsql.serve.traffic import Traffic

LIMIT, SECOND_LIMIT = 9.5, 3.0
"""The seconds within which the process ends after a first signal to stop, and after a second."""


def _now() -> float:
    return datetime.now(UTC).timestamp()


def _hears_signals() -> bool:
    """Whether the loop can handle signals: in the main thread of a system that has SIGHUP."""
    return hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread()


class Server:
    """Listens for PostgreSQL clients on one address."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        tls: SSLContext | None = None,
        limits: Limits,
        reload: Callable[[], None] | None = None,
        traffic: Traffic | None = None,
        stopping: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Nothing is opened before ``start``. ``reload`` is called on SIGHUP, and returns at once.

        After a signal to stop, ``stopping`` is called with the seconds within which all ends.
        """
        self._reload, self._on_stop = reload, stopping
        self.traffic = traffic or Traffic()
        self._room = Listener(
            endpoint, self.traffic, limits, _now, tls, compare=hmac.compare_digest,
        )  # fmt: skip
        self.beside: list[Face] = []
        """Other faces, which are drained together with this one."""
        self._server: asyncio.Server | None = None
        self._stopping, self._hurried = asyncio.Event(), False

    @property
    def connections(self) -> int:
        """The number of clients that are connected."""
        return len(self._room.open)

    @property
    def sessions(self) -> int:
        """The number of clients that have logged in."""
        return len(self._room.keys)

    def bear(self, limits: Limits) -> None:
        """Use these limits from now on."""
        self._room.limits = limits

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port. The port 0 asks for any free one."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._room), host, port, backlog=512
        )
        taken: int = self._server.sockets[0].getsockname()[1]
        return taken

    def stop(self) -> None:
        """Ask ``serve`` to drain and return. After a second call it waits for nothing more."""
        self._hurried = self._stopping.is_set()
        self._stopping.set()

    async def serve(self, *, ready: Callable[[], None] = lambda: None) -> None:
        """Run until ``stop`` or a signal, and then drain."""
        loop = asyncio.get_running_loop()
        if _hears_signals():
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._told_to_stop)
            if self._reload is not None:
                loop.add_signal_handler(signal.SIGHUP, self._reload)
        ready()
        await self._stopping.wait()
        await self.drain()

    def _told_to_stop(self) -> None:
        self._on_stop(SECOND_LIMIT if self._stopping.is_set() else LIMIT)
        self.stop()

    async def drain(self) -> None:
        """Accept no more connections, let statements end for a while, stop the rest, and close."""
        seconds = self._room.limits.drain_seconds
        await drain([self, *self.beside], self.traffic, seconds, lambda: self._hurried)

    def deafen(self) -> None:
        """Accept no more connections."""
        assert self._server is not None
        self._server.close()

    def leave(self) -> None:
        """Close the connections that have no statement running."""
        for connection in list(self._room.open):
            connection.leave()

    def interrupt(self) -> None:
        """Stop the statements that run, and tell their clients."""
        for connection in list(self._room.open):
            connection.end_for_good()

    def abort(self) -> None:
        """Close the remaining connections at once."""
        for connection in list(self._room.open):
            connection.abort()
