"""The HTTP server. It runs on the same event loop as the PostgreSQL face."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from email.utils import formatdate

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from dpsql.serve.databases import Databases
from dpsql.serve.departure import has_left
from dpsql.serve.draining import GOODBYE_SECONDS, drain
from dpsql.serve.endpoint import Certificate, ServiceEndpoint
from dpsql.serve.http.app import Face
from dpsql.serve.newcomers import Newcomers
from dpsql.serve.pgwire.handshake import encrypted
from dpsql.serve.traffic import Traffic

GRACE_SECONDS = 4.0


class PromptProtocol(H11Protocol):
    """A connection. It is closed if a request does not arrive whole within ``seconds``.

    Between requests a connection may be idle for ``timeout_keep_alive``. While it carries out no
    request of a known user it is a newcomer, which others may displace.
    """

    seconds = 30.0
    newcomers = Newcomers(400, 200)
    _deadline: asyncio.TimerHandle | None = None
    _closing: asyncio.TimerHandle | None = None
    _peer: object = None
    _early = b""
    _made = _lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as there
        """Await the first request, part of which may have come as the TLS handshake ended."""
        if self._lost:
            return
        self._made = True
        super().connection_made(transport)
        self.app_state = {**self.app_state, "connection": self}
        self._peer = transport.get_extra_info("peername")
        self.newcomers.add(self, self._peer)
        self._await_rest()
        if self._early:
            early, self._early = self._early, b""
            self.data_received(early)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request, or its end."""
        if not self._made:
            self._early += data
            return
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._await_rest()
        else:
            self._rested()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the client has left."""
        self._lost = True
        self._rested()
        if self._closing is not None:
            self._closing.cancel()
        self.newcomers.discard(self)
        if self._made:
            super().connection_lost(exc)

    def enter(self) -> None:
        """Note a request of a known user. Nobody displaces the connection until it is answered."""
        self.newcomers.discard(self)

    def gone(self) -> bool:
        """Whether the client has left, also while nothing is read from its connection."""
        return self._lost or has_left(self.transport)

    def on_response_complete(self) -> None:
        """Become a newcomer again until the next request."""
        self.newcomers.discard(self)
        if not self._lost:
            self.newcomers.add(self, self._peer, begun=True)
        super().on_response_complete()

    def give_way(self) -> None:
        """Close at once, since another newcomer needs the place."""
        self.transport.abort()

    def leave(self) -> None:
        """Close once no request is carried out, and soon after that whatever the client does."""
        if not self.transport.is_closing():
            with contextlib.suppress(h11.LocalProtocolError):
                self.shutdown()
        elif self._closing is None:
            self._closing = self.loop.call_later(GOODBYE_SECONDS, self.transport.abort)

    def _await_rest(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.seconds, self.transport.abort)

    def _rested(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Handshake(asyncio.Protocol):
    """A connection during its TLS handshake. It is a newcomer too."""

    def __init__(self, tls: ssl.SSLContext, prompt: PromptProtocol, open_: set[Handshake]) -> None:
        """``prompt`` takes over when the handshake is done."""
        self._tls, self._prompt, self._open = tls, prompt, open_
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._shaking: asyncio.Task[None] | None = None
        self._deadline = self._loop.call_later(prompt.seconds, self.give_way)

    def connection_made(  # type: ignore[override]  # no loop calls it with another transport
        self, transport: asyncio.Transport
    ) -> None:
        """Wait for the client, which speaks first."""
        self._transport = transport
        self._open.add(self)
        self._prompt.newcomers.add(self, transport.get_extra_info("peername"))

    def data_received(self, data: bytes) -> None:
        """Begin the handshake, which reads all that follows the client's first bytes."""
        if self._shaking is None and self._transport is not None:
            self._transport.pause_reading()
            self._shaking = self._loop.create_task(self._shake(self._transport, data))

    async def _shake(self, transport: asyncio.Transport, hello: bytes) -> None:
        found = None
        with contextlib.suppress(OSError, asyncio.CancelledError):
            found = await encrypted(transport, self._prompt, self._tls, hello, None)
        self._over()
        if found is None:
            transport.abort()
        else:
            self._prompt.connection_made(found)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        """Note that the client has left before the handshake began."""
        self._over()

    def _over(self) -> None:
        self._deadline.cancel()
        self._open.discard(self)
        self._prompt.newcomers.discard(self)

    def give_way(self) -> None:
        """Close: it took too long, the place is needed, or no more connections are accepted."""
        if self._shaking is not None:
            self._shaking.cancel()
        elif self._transport is not None:
            self._transport.abort()


class HttpServer:
    """Listens for HTTP clients on one address."""

    def __init__(
        self,
        endpoint: ServiceEndpoint | Databases,
        host: str,
        port: int,
        proof: Certificate | None,
        traffic: Traffic | None = None,
    ) -> None:
        """Nothing is opened before ``start``."""
        self.traffic = traffic or Traffic()
        self.face = Face(lambda: endpoint.snapshots, self.traffic)
        self._config = uvicorn.Config(
            self.face.app(), log_level="warning", http=PromptProtocol, access_log=False, lifespan="off", ws="none",
            proxy_headers=False,  # any client may write them, so only the socket's address counts
            timeout_keep_alive=30,
            ssl_certfile=None if proof is None else proof.chain,
            ssl_keyfile=None if proof is None else proof.key,
        )  # fmt: skip
        self._where, self._state = (host, port), ServerState()
        self._shaking: set[Handshake] = set()
        self._server: asyncio.Server | None = None
        self._ticking: asyncio.TimerHandle | None = None

    async def start(self) -> int:
        """Listen, and return the port. The port 0 asks for any free one."""
        family = socket.AF_INET6 if ":" in self._where[0] else socket.AF_INET
        sock = socket.create_server(self._where, family=family)
        self._config.load()
        self._tick()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._taken_in, sock=sock, backlog=512)
        port: int = sock.getsockname()[1]
        return port

    def _taken_in(self) -> asyncio.Protocol:
        tls = self._config.ssl
        return self._prompt() if tls is None else Handshake(tls, self._prompt(), self._shaking)

    def _prompt(self) -> PromptProtocol:
        made = PromptProtocol(self._config, self._state, {}, asyncio.get_running_loop())
        made.newcomers = self.traffic.newcomers
        return made

    def _tick(self) -> None:
        """Set the date of responses, once a second."""
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        self._ticking = asyncio.get_running_loop().call_later(1.0, self._tick)

    @property
    def connections(self) -> int:
        """The number of clients that are connected."""
        return len(self._state.connections) + len(self._shaking)

    def deafen(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            self._server.close()
        if self._ticking is not None:
            self._ticking.cancel()

    def leave(self) -> None:
        """Close the connections that carry out no request."""
        for shaking in list(self._shaking):
            shaking.give_way()
        for connection in self._connections():
            connection.leave()

    def interrupt(self) -> None:
        """Stop the requests that are carried out, and tell their clients."""
        self.face.interrupt()

    def abort(self) -> None:
        """Close the remaining connections at once."""
        for connection in self._connections():
            connection.transport.abort()

    def _connections(self) -> list[PromptProtocol]:
        return [c for c in self._state.connections if isinstance(c, PromptProtocol)]

    async def stop(self) -> None:
        """Drain this face alone, and the parts that it shares with others."""
        await drain([self], self.traffic, GRACE_SECONDS, lambda: False)
