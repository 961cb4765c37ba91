"""The endpoint: listens, makes connections, drains when it is told to stop."""

from __future__ import annotations

import asyncio
import hmac
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from ssl import SSLContext

from dpsql.serve.pgwire.connection import Connection
from dpsql.serve.pgwire.room import Limits, Room
from dpsql.serve.pgwire.startup import House

WORKERS, LIGHT, PROOFS = 8, 4, 1


def _now() -> float:
    return datetime.now(UTC).timestamp()


def _hears_signals() -> bool:
    """Only a main thread is told of signals, and a loop only where there is SIGHUP."""
    return hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread()


class Server:
    """Listening for PostgreSQL clients on one address."""

    def __init__(
        self,
        house: House,
        *,
        tls: SSLContext | None = None,
        limits: Limits,
        reload: Callable[[], None] | None = None,
    ) -> None:
        """Nothing is opened before ``start``; ``reload`` is called in a worker on SIGHUP."""
        self._reload = reload
        self._workers = ThreadPoolExecutor(WORKERS, "dpsql-wire")
        self._light = ThreadPoolExecutor(LIGHT, "dpsql-light")
        self._proofs = ThreadPoolExecutor(PROOFS, "dpsql-proof")
        self._room = Room(
            house, self._workers, self._light, self._proofs, limits, _now, tls,
            compare=hmac.compare_digest,
        )  # fmt: skip
        self._server: asyncio.Server | None = None
        self._stopping = asyncio.Event()

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._room.open)

    def bear(self, limits: Limits) -> None:
        """Other limits from here on."""
        self._room.limits = limits

    async def start(self, host: str, port: int) -> int:
        """Listen; the port that was taken (0 asks for any)."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._room), host, port, backlog=512
        )
        taken: int = self._server.sockets[0].getsockname()[1]
        return taken

    def stop(self) -> None:
        """Ask ``serve`` to drain and return."""
        self._stopping.set()

    async def serve(self, *, ready: Callable[[], None] = lambda: None) -> None:
        """Until ``stop`` or a signal; then finish what runs, and close."""
        loop = asyncio.get_running_loop()
        if _hears_signals():
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.stop)
            if self._reload is not None:
                loop.add_signal_handler(
                    signal.SIGHUP, loop.run_in_executor, self._workers, self._reload
                )
        ready()
        await self._stopping.wait()
        await self.drain()

    async def drain(self) -> None:
        """Take nobody in any more; let running statements end; close."""
        assert self._server is not None
        self._room.draining = True
        self._server.close()
        loop = asyncio.get_running_loop()
        end = loop.time() + self._room.limits.drain_seconds
        while self._room.open and loop.time() < end:
            for connection in list(self._room.open):
                connection.leave()
            await asyncio.sleep(0.02)
        for connection in list(self._room.open):
            connection.abort()
        await asyncio.sleep(0)
        for lane in (self._proofs, self._light, self._workers):
            lane.shutdown(wait=True, cancel_futures=True)
