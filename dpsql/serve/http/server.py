"""The HTTP face beside the PostgreSQL one, on the same event loop."""

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
    """A connection. A request comes whole within some seconds, or not at all.

    Between requests a connection may rest for as long as ``timeout_keep_alive`` says. While nobody
    is known to ask something it is a newcomer, which gives way to others.
    """

    seconds = 30.0
    newcomers = Newcomers(400, 200)
    _deadline: asyncio.TimerHandle | None = None
    _closing: asyncio.TimerHandle | None = None
    _peer: object = None
    _early = b""
    _made = _lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as there
        """The first request is due, or has come while the TLS handshake ended."""
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
        """A part of a request, or its end."""
        if not self._made:
            self._early += data
            return
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._await_rest()
        else:
            self._rested()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._lost = True
        self._rested()
        if self._closing is not None:
            self._closing.cancel()
        self.newcomers.discard(self)
        if self._made:
            super().connection_lost(exc)

    def enter(self) -> None:
        """Somebody who is known has asked something: until it is answered, the place is theirs."""
        self.newcomers.discard(self)

    def gone(self) -> bool:
        """Whether the client is gone, also while nothing is read of it."""
        return self._lost or has_left(self.transport)

    def on_response_complete(self) -> None:
        """Nobody is known any more, until the next request."""
        self.newcomers.discard(self)
        if not self._lost:
            self.newcomers.add(self, self._peer, begun=True)
        super().on_response_complete()

    def give_way(self) -> None:
        """Another newcomer needs the place."""
        self.transport.abort()

    def leave(self) -> None:
        """Close when no request is being carried out; soon, whatever the client does."""
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
    """A client before its TLS handshake is done: a newcomer too."""

    def __init__(self, tls: ssl.SSLContext, prompt: PromptProtocol, open_: set[Handshake]) -> None:
        """``prompt`` goes on when the handshake is done."""
        self._tls, self._prompt, self._open = tls, prompt, open_
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._shaking: asyncio.Task[None] | None = None
        self._deadline = self._loop.call_later(prompt.seconds, self.give_way)

    def connection_made(  # type: ignore[override]  # no loop calls it with another transport
        self, transport: asyncio.Transport
    ) -> None:
        """The client speaks first."""
        self._transport = transport
        self._open.add(self)
        self._prompt.newcomers.add(self, transport.get_extra_info("peername"))

    def data_received(self, data: bytes) -> None:
        """The client begins; what follows is read by whoever shakes hands."""
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
        """The client has gone before it began."""
        self._over()

    def _over(self) -> None:
        self._deadline.cancel()
        self._open.discard(self)
        self._prompt.newcomers.discard(self)

    def give_way(self) -> None:
        """It took too long, another newcomer needs the place, or nobody is taken in any more."""
        if self._shaking is not None:
            self._shaking.cancel()
        elif self._transport is not None:
            self._transport.abort()


class HttpServer:
    """Listening for HTTP clients on one address."""

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
            proxy_headers=False,  # anybody may write them: an address is what a connection comes from
            timeout_keep_alive=30,
            ssl_certfile=None if proof is None else proof.chain,
            ssl_keyfile=None if proof is None else proof.key,
        )  # fmt: skip
        self._where, self._state = (host, port), ServerState()
        self._shaking: set[Handshake] = set()
        self._server: asyncio.Server | None = None
        self._ticking: asyncio.TimerHandle | None = None

    async def start(self) -> int:
        """Listen; the port that was taken (0 asks for any)."""
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
        """The date that responses have, each second."""
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        self._ticking = asyncio.get_running_loop().call_later(1.0, self._tick)

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._state.connections) + len(self._shaking)

    def deafen(self) -> None:
        """Take nobody in any more."""
        if self._server is not None:
            self._server.close()
        if self._ticking is not None:
            self._ticking.cancel()

    def leave(self) -> None:
        """Close the connections for which no request is being carried out."""
        for shaking in list(self._shaking):
            shaking.give_way()
        for connection in self._connections():
            connection.leave()

    def interrupt(self) -> None:
        """Stop what is being carried out, and tell its clients."""
        self.face.interrupt()

    def abort(self) -> None:
        """Close what is left at once."""
        for connection in self._connections():
            connection.transport.abort()

    def _connections(self) -> list[PromptProtocol]:
        return [c for c in self._state.connections if isinstance(c, PromptProtocol)]

    async def stop(self) -> None:
        """Drain this face alone, with all that it shares."""
        await drain([self], self.traffic, GRACE_SECONDS, lambda: False)
