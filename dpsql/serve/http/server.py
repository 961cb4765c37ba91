"""The HTTP face beside the PostgreSQL one, on the same event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dpsql.serve.databases import Databases
from dpsql.serve.house import Certificate, ServiceHouse
from dpsql.serve.http.app import Face


class Prompt(H11Protocol):
    """A request comes whole within some seconds, or not at all: who dawdles keeps a place from others.

    Between requests a connection may rest for as long as ``timeout_keep_alive`` says.
    """

    seconds = 30.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as there
        """The first request is due."""
        super().connection_made(transport)
        self._await_rest()

    def data_received(self, data: bytes) -> None:
        """A part of a request, or its end."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._await_rest()
        else:
            self._rested()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._rested()
        super().connection_lost(exc)

    def _await_rest(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.seconds, self.transport.abort)

    def _rested(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Quiet(uvicorn.Server):
    """Signals are for the endpoint, which stops this server too."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """Listening for HTTP clients on one address."""

    def __init__(
        self, house: ServiceHouse | Databases, host: str, port: int, proof: Certificate | None
    ) -> None:
        """Nothing is opened before ``start``."""
        config = uvicorn.Config(
            Face(lambda: house.worlds).app(), host=host, port=port, log_level="warning", http=Prompt,
            access_log=False, server_header=False, lifespan="off", ws="none",
            timeout_keep_alive=30, timeout_graceful_shutdown=30, limit_concurrency=1_000,
            ssl_certfile=None if proof is None else proof.chain,
            ssl_keyfile=None if proof is None else proof.key,
        )  # fmt: skip
        self._server, self._where = _Quiet(config), (host, port)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """Listen; the port that was taken (0 asks for any)."""
        family = socket.AF_INET6 if ":" in self._where[0] else socket.AF_INET
        sock = socket.create_server(self._where, family=family)
        self._serving = asyncio.create_task(self._server.serve(sockets=[sock]))
        port: int = sock.getsockname()[1]
        return port

    async def stop(self) -> None:
        """Take nobody in any more, and let running requests end."""
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving
