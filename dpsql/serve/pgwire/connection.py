"""One connection: a socket's callbacks around a ``Machine``. Requests run in worker threads."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import cast

from dpsql.policy.model import Access
from dpsql.serve.pgwire.asking import Ask, Backend, Encode, EncodeCopy, RunOwn
from dpsql.serve.pgwire.crowd import Seen
from dpsql.serve.pgwire.errors import CANCELED, ENDED, TOO_MANY, Fatal, WireError
from dpsql.serve.pgwire.machine import Machine, Phase
from dpsql.serve.pgwire.room import Room
from dpsql.serve.pgwire.transaction import Status

HIGH_WATER = 1 << 20
PROTOCOL_NAME = "postgresql"
"""What both sides must agree on (ALPN) when TLS begins without having been asked for."""
_TLS_HANDSHAKE = b"\x16"


def _hand_on(transport: asyncio.Transport, data: bytes) -> None:
    """Bytes that were read already go to whoever reads now."""
    reader = cast("asyncio.BufferedProtocol", transport.get_protocol())
    while data:
        buffer = memoryview(reader.get_buffer(len(data)))
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        reader.buffer_updated(size)
        data = data[size:]


class Connection(asyncio.Protocol):
    """Feeds the machine, sends what it says, and fetches what it asks for."""

    def __init__(self, room: Room) -> None:
        """Not connected yet."""
        self._room = room
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._working: asyncio.Future[object] | None = None
        self._asked: Ask | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._writable = True
        self._reading = True
        self._shaking: asyncio.Task[None] | None = None
        self._result: tuple[object, BaseException | None] | None = None
        self._lock = threading.Lock()
        self._thread = 0
        self._silent = True
        self.machine = Machine(
            room.house, largest=room.limits.largest_message, admit=room.admit, crowd=room
        )
        self._begun = self._changed = self._loop.time()
        self._woken: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is here; also called again when TLS has begun."""
        first = self._transport is None
        self._transport = cast("asyncio.Transport", transport)
        if not first:
            return
        self._transport.set_write_buffer_limits(HIGH_WATER)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._room.open.add(self)
        if self._room.draining or len(self._room.open) > self._room.limits.connections:
            self.machine.refuse(Fatal(TOO_MANY, "sorry, too many clients already"))
            self._settle()
            return
        self._deadline = self._loop.call_later(self._room.limits.startup_seconds, self._too_late)

    def data_received(self, data: bytes) -> None:
        """Bytes from the client; TLS may begin with the first, without having been asked for."""
        first, self._silent = self._silent, False
        if self.machine.idle:
            self._woken = self._changed = self._loop.time()
        if first and self._room.tls is not None and data[:1] == _TLS_HANDSHAKE:
            assert self._transport is not None
            self.machine.encrypting()
            self._encrypt(self._transport, data)
            return
        self.machine.receive(data)
        self._settle()

    def eof_received(self) -> bool:
        """The client is done."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        """The client is gone; a statement that runs is carried to its end, and stored."""
        self._room.open.discard(self)
        if self.machine.key is not None:
            self._room.keys.pop(self.machine.key[0], None)
        for timer in (self._deadline, self._timer, self._idle):
            if timer is not None:
                timer.cancel()
        self.machine.phase = Phase.CLOSED
        self._transport = None

    def pause_writing(self) -> None:
        """The client reads slowly: large answers wait."""
        self._writable = False

    def resume_writing(self) -> None:
        """The client has read what was sent."""
        self._writable = True
        if self._result is not None:
            result, error = self._result
            self._result = None
            self._deliver(result, error)

    def _settle(self) -> None:
        """Send what there is to send, and see to what the machine wants next."""
        machine, transport = self.machine, self._transport
        if transport is None:
            return
        data = machine.take()
        if machine.idle:
            self._changed = self._loop.time()
        if data and machine.delay:
            self._loop.call_later(machine.delay, self._last_words, data)
            self._reads(wanted=False)
            return
        if data:
            transport.write(data)
        if machine.phase is Phase.READY and self._deadline is not None:
            self._entered()
        if machine.phase is Phase.ENCRYPTING:
            self._encrypt(transport)
            return
        if machine.phase is Phase.CLOSED:
            self._closed(transport)
        elif machine.ask is not None and machine.ask is not self._asked:
            self._work(machine.ask)
        self._reads(wanted=machine.backlog < 2 * self._room.limits.largest_message)
        self._watch()

    def _reads(self, *, wanted: bool) -> None:
        if wanted != self._reading and self._transport is not None:
            self._reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _entered(self) -> None:
        """The log-in is over: the deadline goes, cancelling is possible."""
        assert self._deadline is not None
        self._deadline.cancel()
        self._deadline = None
        if self.machine.key is not None:
            self._room.keys[self.machine.key[0]] = self

    def _encrypt(self, transport: asyncio.Transport, hello: bytes = b"") -> None:
        """Shake hands; until then nothing is read, or the client's hello would be lost.

        What arrives between the handshake and the task's next step came encrypted: it waits.
        ``hello`` is what a client began with that did not ask first.
        """
        if self._shaking is not None:
            return
        transport.pause_reading()

        async def shake() -> None:
            assert self._room.tls is not None
            try:
                start = self._loop.start_tls(transport, self, self._room.tls, server_side=True)
                handshake = self._loop.create_task(start)
                await asyncio.sleep(0)  # it has begun: what it scheduled comes before this
                if hello:
                    self._loop.call_soon(_hand_on, transport, hello)
                encrypted = await handshake
            except (OSError, asyncio.CancelledError):
                transport.abort()
                return
            if encrypted is None:
                return
            agreed = encrypted.get_extra_info("ssl_object").selected_alpn_protocol()
            if hello and agreed != PROTOCOL_NAME:
                encrypted.abort()  # whoever is there did not mean to talk to a PostgreSQL server
                return
            self._transport = encrypted
            self.machine.encrypted()
            self._settle()

        self._shaking = self._loop.create_task(shake())

    def _last_words(self, data: bytes) -> None:
        self.machine.delay = 0.0
        if self._transport is not None:
            self._transport.write(data)
            self._closed(self._transport)

    def _closed(self, transport: asyncio.Transport) -> None:
        wanted = self.machine.cancel
        if wanted is not None:
            self.machine.cancel = None
            target = self._room.keys.get(wanted.process)
            key = None if target is None else target.machine.key
            if target is not None and key is not None and self._room.compare(key[1], wanted.key):
                target.interrupt("canceling statement due to user request")
        if not transport.is_closing():
            transport.close()

    def _too_late(self) -> None:
        """Whoever has not logged in by now keeps a place from others."""
        self.abort()

    def _work(self, ask: Ask) -> None:
        """Carry out a request in a worker, after whatever still runs for this connection."""
        assert self.machine.session is not None
        self._asked = ask
        earlier = self._working
        if earlier is None or earlier.done():
            self._submit(ask)
        else:  # interrupted: the worker is still busy with what nobody waits for any more
            earlier.add_done_callback(lambda _: self._submit(ask))
        chosen, most = self.machine.session.variables.timeout, self._access().statement_seconds
        seconds = min(chosen or most or 0, most or chosen)
        if seconds and not isinstance(ask, Encode | EncodeCopy | RunOwn):
            said = "canceling statement due to statement timeout"
            self._timer = self._loop.call_later(seconds, self.interrupt, said)

    def _access(self) -> Access:
        return self.machine.home.admission(self.machine.role).access

    def _submit(self, ask: Ask) -> None:
        if self._asked is not ask or self.machine.session is None:
            return
        backend = self.machine.session.backend
        future = self._loop.run_in_executor(self._room.workers, self._perform, ask, backend)
        self._working = future
        self._working.add_done_callback(lambda done: self._worked(ask, done))

    def _perform(self, ask: Ask, backend: Backend) -> object:
        """In a worker: carry it out, and let it be known where that is done."""
        with self._lock:
            self._thread = threading.get_ident()
        try:
            return ask.perform(backend)
        finally:
            with self._lock:
                self._thread = 0

    def _worked(self, ask: Ask, done: asyncio.Future[object]) -> None:
        """A worker is done; what was interrupted meanwhile is dropped (its charge stays)."""
        error = None if done.cancelled() else done.exception()
        if self._asked is not ask or self.machine.phase is Phase.CLOSED or done.cancelled():
            return
        result = None if error is not None else done.result()
        if isinstance(ask, Encode | EncodeCopy) and not self._writable and error is None:
            self._result = (result, None)
        else:
            self._deliver(result, error)

    def _deliver(self, result: object, error: BaseException | None) -> None:
        large, self._asked = isinstance(self._asked, Encode | EncodeCopy), None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if error is not None:
            self.machine.fail(error)
        else:
            self.machine.resume(result)
        if large and self.machine.ask is None:
            self._room.tidy(self._loop)
        self._settle()

    def interrupt(self, said: str) -> None:
        """Answer now that the statement was cancelled, and stop the engine.

        What it was charged stays charged. The lock keeps the worker from going on to another
        connection's statement before this one's is stopped.
        """
        if self._halt():
            self._deliver(None, WireError(CANCELED, said, hint=_STORED))

    def _halt(self) -> bool:
        """Stop what runs, if something does. Nobody waits for its result any more."""
        if self.machine.ask is None or self._asked is None:
            return False
        self._result = None
        with self._lock:
            if self._thread and self.machine.session is not None:
                self.machine.session.backend.interrupt(self._thread)
        return True

    def seen(self) -> Seen | None:
        """What pg_stat_activity says of this connection, once it has logged in."""
        machine, session = self.machine, self.machine.session
        if session is None or machine.key is None:
            return None
        shift = self._room.clock() - self._loop.time()
        peer = None if self._transport is None else self._transport.get_extra_info("peername")
        address, port = (str(peer[0]), int(peer[1])) if peer else (None, None)
        return Seen(
            machine.key[0], machine.role, session.backend.taken, machine.database,
            session.variables.get("application_name"), address, port, shift + self._begun,
            None if self._woken is None else shift + self._woken, shift + self._changed,
            _RESTING[session.transaction.status] if machine.idle else "active",
            session.asked, machine.home,
        )  # fmt: skip

    def stop(self, *, ends: bool) -> None:
        """Cancel what runs here, or end the session; may be said in any thread."""
        if ends:
            self._loop.call_soon_threadsafe(self._end)
        else:
            said = "canceling statement due to user request"
            self._loop.call_soon_threadsafe(self.interrupt, said)

    def _end(self) -> None:
        """End the session as its role asked; what it was charged stays charged."""
        if self.machine.phase is Phase.CLOSED:
            return
        self._halt()
        self.machine.refuse(Fatal(ENDED, "terminating connection due to administrator command"))
        self._settle()

    def _watch(self) -> None:
        """Close sessions that are idle for longer than the endpoint allows."""
        if self.machine.phase is not Phase.READY:
            return
        seconds = self._access().idle_seconds or self._room.limits.idle_seconds
        if not seconds:
            return
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self.machine.ask is None:
            self._idle = self._loop.call_later(seconds, self._too_late)

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def leave(self) -> None:
        """Close when nothing is being carried out."""
        if self._transport is not None and self.machine.idle and not self.machine.backlog:
            self._transport.close()


_RESTING = {
    Status.IDLE: "idle",
    Status.OPEN: "idle in transaction",
    Status.FAILED: "idle in transaction (aborted)",
}
_STORED = (
    "What it was charged stays charged; if its answer was stored, asking again returns it for free."
)
