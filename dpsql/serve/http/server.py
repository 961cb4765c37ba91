"""The HTTP face beside the PostgreSQL one, on the same event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from dpsql.serve.databases import Databases
from dpsql.serve.house import Certificate, ServiceHouse
from dpsql.serve.http.app import Face


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
            Face(lambda: house.worlds).app(), host=host, port=port, log_level="warning",
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
