"""One connection: a socket's callbacks around a ``Machine``. Requests run in worker threads."""

from __future__ import annotations

import asyncio
import socket
from typing import cast

from dpsql.policy.model import Access
from dpsql.serve.pgwire.asking import LARGE, TIMED, Ask, Backend, Pause
from dpsql.serve.pgwire.crowd import Seen
from dpsql.serve.pgwire.errors import CANCELED, ENDED, TOO_MANY, Fatal, WireError
from dpsql.serve.pgwire.handshake import FIRST_BYTE, encrypted
from dpsql.serve.pgwire.machine import Machine, Phase
from dpsql.serve.pgwire.room import Room
from dpsql.serve.pgwire.timers import Timers
from dpsql.serve.pgwire.transaction import Status
from dpsql.serve.pgwire.work import Work

HIGH_WATER = 1 << 20


class Connection(asyncio.Protocol):
    """Feeds the machine, sends what it says, and fetches what it asks for."""

    def __init__(self, room: Room) -> None:
        """Not connected yet."""
        self._room = room
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._timers = Timers(self._loop)
        self._work = Work(self._worked)
        self._writable = True
        self._reading = True
        self._shaking: asyncio.Task[None] | None = None
        self._held: tuple[object] | None = None
        self._silent = self._entering = True
        self.machine = Machine(room.house, admit=room.admit, crowd=room)
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
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # who vanished is noticed
        self._room.open.add(self)
        if self._room.draining or len(self._room.open) > self._room.limits.connections:
            self.machine.refuse(Fatal(TOO_MANY, "sorry, too many clients already"))
            self._settle()
            return
        self._timers.set("start", self._room.limits.startup_seconds, self.abort)

    def data_received(self, data: bytes) -> None:
        """Bytes from the client; TLS may begin with the first, without having been asked for."""
        first, self._silent = self._silent, False
        if self.machine.idle:
            self._woken = self._changed = self._loop.time()
        if first and self._room.tls is not None and data[:1] == FIRST_BYTE:
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
        self._timers.cancel_all()
        self._work.forget()
        self._held = None
        self.machine.phase = Phase.CLOSED
        self._transport = None

    def pause_writing(self) -> None:
        """The client reads slowly: answers wait, and nothing more is read of it."""
        self._writable = False
        self._reads()
        self._await_reader()

    def resume_writing(self) -> None:
        """The client has read what was sent."""
        self._writable = True
        self._timers.cancel("send")
        self._reads()
        if self._held is not None:
            (result,), self._held = self._held, None
            self._deliver(result, None)

    def _await_reader(self, before: int | None = None) -> None:
        """Close a connection whose client takes nothing, for as long as the endpoint bears that."""
        if self._transport is None:
            return
        waiting = self._transport.get_write_buffer_size()
        if before is not None and waiting >= before:
            self.abort()
            return
        seconds = self._room.limits.send_seconds
        self._timers.set("send", seconds, lambda: self._await_reader(waiting))

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
        if machine.phase is Phase.READY and self._entering:
            self._entered()  # before the client is told: it may cancel from then on
        if data:
            transport.write(data)
        if machine.phase is Phase.ENCRYPTING:
            self._encrypt(transport)
            return
        if machine.phase is Phase.CLOSED:
            self._closed(transport)
        elif machine.ask is not None and machine.ask is not self._work.ask:
            self._carry_out(machine.ask)
        self._reads()
        self._watch()

    def _reads(self, *, wanted: bool = True) -> None:
        """Read on, unless enough has been read that waits, or the client does not read itself."""
        wanted &= self._writable and self.machine.backlog < 2 * self.machine.largest
        if wanted != self._reading and self._transport is not None and not self._shaking:
            self._reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _entered(self) -> None:
        """The log-in is over: the deadline goes, cancelling is possible."""
        self._entering = False
        self._timers.cancel("start")
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
            found = None
            try:
                found = await encrypted(transport, self, self._room.tls, hello)
            except (OSError, asyncio.CancelledError):
                transport.abort()
            self._shaking = None
            if found is None:
                self.abort()  # nobody else says that the connection is lost: it was not made
                return
            self._transport = found
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
            self._await_reader()

    def _carry_out(self, ask: Ask) -> None:
        """Have a request carried out; an answer may take so long."""
        if isinstance(ask, Pause):
            self._work.rest(ask)
            return
        session = self.machine.session
        backend = cast("Backend", None) if session is None else session.backend
        self._work.begin(ask, backend, self._room.lane(ask, backend))
        if session is None or not isinstance(ask, TIMED):
            return
        chosen, most = session.variables.timeout, self._access().statement_seconds
        seconds = min(chosen or most or 0, most or chosen)
        if seconds:
            said = "canceling statement due to statement timeout"
            self._timers.set("statement", seconds, lambda: self.interrupt(said))

    def _access(self) -> Access:
        return self.machine.home.admission(self.machine.role).access

    def _worked(self, ask: Ask, result: object, error: BaseException | None) -> None:
        """What was asked for is here; what is large waits for the client to read."""
        if self.machine.phase is Phase.CLOSED:
            return
        if isinstance(ask, (*LARGE, Pause)) and not self._writable and error is None:
            self._held = (result,)
        else:
            self._deliver(result, error)

    def _deliver(self, result: object, error: BaseException | None) -> None:
        large = isinstance(self._work.ask, LARGE)
        self._work.ask = None
        self._timers.cancel("statement")
        if error is not None:
            self.machine.fail(error)
        else:
            self.machine.resume(result)
        if large and self.machine.ask is None:
            self._room.tidy(self._loop)
        self._settle()

    def interrupt(self, said: str) -> None:
        """Answer now that the statement was cancelled, and stop the engine."""
        if self._halt():
            self._deliver(None, WireError(CANCELED, said, hint=_STORED))

    def _halt(self) -> bool:
        """Stop what runs, if something does. Nobody waits for its result any more."""
        session = self.machine.session
        if self.machine.idle or self._work.ask is None or session is None:
            return False
        self._held = None
        self._work.stop(session.backend)
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
        if seconds and self.machine.ask is None:
            self._timers.set("idle", seconds, self.abort)
        else:
            self._timers.cancel("idle")

    def abort(self) -> None:
        """Close at once, and give the place back: in a handshake nobody else would."""
        if self._shaking is not None:
            self._shaking.cancel()
        if self._transport is not None:
            self._transport.abort()
        self.connection_lost(None)

    def leave(self) -> None:
        """Close when nothing is being carried out."""
        if self._shaking is not None:
            self.abort()
        elif self._transport is not None and self.machine.idle and not self.machine.backlog:
            self._transport.close()


_RESTING = {
    Status.IDLE: "idle",
    Status.OPEN: "idle in transaction",
    Status.FAILED: "idle in transaction (aborted)",
}
_STORED = (
    "What it was charged stays charged; if its answer was stored, asking again returns it for free."
)
