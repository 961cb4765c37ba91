"""One connection: a socket's callbacks around a ``Machine``. Requests run in the threads of lanes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Hashable
from typing import cast

from dpsql.diagnostics.operation.events import Disconnected, LoggedIn, record
from dpsql.policy.model import Access
from dpsql.serve.departure import LOOK_SECONDS, has_left
from dpsql.serve.draining import GOODBYE_SECONDS
from dpsql.serve.lanes import Job
from dpsql.serve.newcomers import origin
from dpsql.serve.pgwire.asking import LARGE_RESULTS, TIMED, Ask, Backend, Pause, Wait
from dpsql.serve.pgwire.crowd import Seen
from dpsql.serve.pgwire.errors import CANCELED, ENDED, STOPPING, Fatal, WireError
from dpsql.serve.pgwire.handshake import FIRST_BYTE, encrypted
from dpsql.serve.pgwire.listener import Listener
from dpsql.serve.pgwire.machine import Machine, Phase
from dpsql.serve.pgwire.presence import Presence
from dpsql.serve.pgwire.timers import Timers
from dpsql.serve.pgwire.unread import Unread
from dpsql.serve.pgwire.work import Work, shutting_down
from dpsql.serve.traffic import Reason

HIGH_WATER = 1 << 18


class Connection(asyncio.Protocol):
    """Feeds the machine, sends what it says, and fetches what it asks for."""

    def __init__(self, room: Listener) -> None:
        """Not connected yet."""
        self._room = room
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._timers = Timers(self._loop)
        self._work = Work(self._worked, room.traffic)
        self._writable = True
        self._reading = True
        self._shaking: asyncio.Task[None] | None = None
        self._held: tuple[object] | None = None
        self._unread = Unread()
        self._silent = self._entering = True
        self._known: tuple[str, str] | None = None
        self._presence = Presence(self._loop)
        self.machine = Machine(
            room.endpoint, admit=room.admit, crowd=room,
            attempt=lambda name: room.traffic.throttle.attempt(self._presence.peer, name),
        )  # fmt: skip

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
        if self._room.traffic.draining:
            self.machine.refuse(Fatal(STOPPING, "the database system is shutting down"))
            self._settle()
            return
        self._presence.peer = transport.get_extra_info("peername")
        self._room.traffic.newcomers.add(self, self._presence.peer)
        self._timers.set("start", self._room.limits.startup_seconds, self.abort)

    def data_received(self, data: bytes) -> None:
        """Bytes from the client; TLS may begin with the first, without having been asked for."""
        first, self._silent = self._silent, False
        if self.machine.idle:
            self._presence.wake()
        if first and self._room.tls is not None and data[:1] == FIRST_BYTE:
            assert self._transport is not None
            self.machine.encrypting()
            self._encrypt(self._transport, data)
            return
        with self._room.traffic.turns.turn(self._login()):
            if self._room.traffic.turns.has_had_turn(self._login()):
                self.machine.pause()  # others first, whichever of its connections it comes by
            self.machine.receive(data)
            self._settle()

    def _login(self) -> Hashable:
        """Whose turn it is; before a log-in, that of an address."""
        if self._known is None and self.machine.session is not None:
            self._known = self._room.login(self.machine.home, self.machine.role)
        return self._known or origin(self._presence.peer)

    def eof_received(self) -> bool:
        """The client is done."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        """The client is gone: what it asked for is not begun, or is stopped where it runs.

        What was charged stays charged, and what was measured by then is stored.
        """
        self._room.open.discard(self)
        self._room.traffic.newcomers.discard(self)
        key = self.machine.key
        if key is not None and self._room.keys.pop(key[0], None) is not None:
            there = self._presence
            record(Disconnected(key[0], self.machine.role, there.address, there.seconds))
        self._timers.cancel_all()
        if self._work.ask is not None:
            self._work.stop("disconnect")
        self._held = None
        self.machine.drop()
        self._unread.release()
        self._transport = None

    def pause_writing(self) -> None:
        """The client reads slowly: answers wait, and nothing more is read of it."""
        self._writable = False
        self._reads()
        self._await_reader()
        self._count_unsent()

    def resume_writing(self) -> None:
        """The client has read what was sent."""
        self._writable = True
        self._unread.release()
        self._timers.cancel("send")
        self._reads()
        if self._held is not None:
            (result,), self._held = self._held, None
            self._deliver(result, None)

    def _count_unsent(self) -> None:
        """Count what waits for the client to read; who leaves too much waiting is let go."""
        ready = None if self._held is None else self._held[0]
        if self._transport is not None and not self._unread.fits(self._transport, ready):
            self.abort()

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
            self._presence.rest()
        if machine.phase is Phase.LOGIN:
            self._room.traffic.newcomers.begin(self)
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
        wanted &= self._writable and self.machine.hungry
        if wanted != self._reading and self._transport is not None and not self._shaking:
            self._reading = wanted
            if wanted:
                self._timers.cancel("look")
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
                self._timers.set("look", LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """See whether the client is still there: nothing is read of it that would say so."""
        if self._transport is not None and self._writable and has_left(self._transport):
            self.abort()
        else:
            self._timers.set("look", LOOK_SECONDS, self._look)

    def _entered(self) -> None:
        """The log-in is over: the deadline goes, cancelling is possible."""
        self._entering = False
        self._room.traffic.newcomers.discard(self)
        self._timers.cancel("start")
        if self.machine.key is not None:
            self._room.keys[self.machine.key[0]] = self
            self._log_entry(self.machine.key[0])

    def _log_entry(self, process: int) -> None:
        machine, session = self.machine, self.machine.session
        if session is not None:
            self._unread.charge(session.owner)
            application = session.variables.get("application_name")
            address = self._presence.address
            record(LoggedIn(process, machine.role, machine.database, application, address))

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

    def _closed(self, transport: asyncio.Transport) -> None:
        wanted = self.machine.cancel
        if wanted is not None:
            self.machine.cancel = None
            target = self._room.keys.get(wanted.process)
            key = None if target is None else target.machine.key
            if target is not None and key is not None and self._room.compare(key[1], wanted.key):
                target.interrupt("canceling statement due to user request", "cancel")
        if not transport.is_closing():
            transport.close()
            self._await_reader()

    def _carry_out(self, ask: Ask) -> None:
        """Have a request carried out; an answer may take so long."""
        if isinstance(ask, Pause):
            self._work.ask = ask
            self._room.traffic.turns.rest(self._login(), lambda: self._go_on(ask))
            return
        if not self._reading and self._transport is not None and has_left(self._transport):
            self.abort()  # it sent much, and has gone: nothing of that is begun
            return
        if isinstance(ask, Wait):
            self._wait(ask)
            return
        session, room = self.machine.session, self._room
        backend = cast("Backend", None) if session is None else session.backend
        stops = () if session is None else (backend.interrupt,)
        job = Job(self._login(), lambda: ask.perform(backend), *stops)
        lane = room.lane(ask, backend, at_once=True)
        self._work.begin(ask, job, lane, lambda: room.lane(ask, backend, at_once=False))
        if session is None or not isinstance(ask, TIMED):
            return
        chosen, most = session.variables.timeout, self._access().statement_seconds
        seconds = min(chosen or most or 0, most or chosen)
        if seconds:
            said = "canceling statement due to statement timeout"
            self._timers.set("statement", seconds, lambda: self.interrupt(said, "timeout"))

    def _wait(self, ask: Wait) -> None:
        """Nothing is held meanwhile but the place of one that has not logged in."""
        self._work.ask = ask
        self._timers.set("start", ask.seconds + self._room.limits.startup_seconds, self.abort)
        self._timers.set("attempt", ask.seconds, lambda: self._worked(ask, None, None))

    def _go_on(self, ask: Pause) -> None:
        if self._work.ask is ask:
            with self._room.traffic.turns.turn(self._login()):
                self._worked(ask, None, None)

    def _access(self) -> Access:
        return self.machine.home.admission(self.machine.role).access

    def _worked(self, ask: Ask, result: object, error: BaseException | None) -> None:
        """What was asked for is here; what is large waits for the client to read."""
        if self.machine.phase is Phase.CLOSED:
            return
        if isinstance(ask, (*LARGE_RESULTS, Pause)) and not self._writable and error is None:
            self._held = (result,)
            self._count_unsent()
        else:
            self._deliver(result, error)

    def _deliver(self, result: object, error: BaseException | None) -> None:
        self._work.ask = None
        self._timers.cancel("statement")
        if error is not None:
            self.machine.fail(error)
        else:
            self.machine.resume(result)
        self._settle()

    def interrupt(self, said: str, reason: Reason) -> None:
        """Answer now that the statement was cancelled, and stop the engine."""
        if self._halt(reason):
            self._deliver(None, WireError(CANCELED, said, hint=_STORED))

    def _halt(self, reason: Reason) -> bool:
        """Stop what runs, if something does. Nobody waits for its result any more."""
        if self.machine.idle or self._work.ask is None or self.machine.session is None:
            return False
        self._held = None
        self._work.stop(reason)
        return True

    def seen(self) -> Seen | None:
        """What pg_stat_activity says of this connection, once it has logged in."""
        return self._presence.describe(self.machine, self._room.clock)

    def stop(self, *, ends: bool) -> None:
        """Cancel what runs here, or end the session; may be said in any thread."""
        if ends:
            self._loop.call_soon_threadsafe(self._end)
        else:
            said = "canceling statement due to user request"
            self._loop.call_soon_threadsafe(self.interrupt, said, "cancel")

    def _end(self) -> None:
        """End the session as its role asked; what it was charged stays charged."""
        said = Fatal(ENDED, "terminating connection due to administrator command")
        self._say_goodbye("terminate", said)

    def end_for_good(self) -> None:
        """The process ends: stop what runs, and say so."""
        self._say_goodbye("shutdown", shutting_down())

    def _say_goodbye(self, reason: Reason, said: Fatal) -> None:
        if self.machine.phase is Phase.CLOSED:
            return
        self._halt(reason)
        self.machine.refuse(said)
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

    give_way = abort  # another one that has not logged in needs the place

    def leave(self) -> None:
        """Close when nothing is being carried out; at once where nobody has logged in."""
        if self._entering:
            self.abort()
        elif self._transport is None or not self._at_rest():
            return
        elif self._transport.is_closing():
            self._timers.default("close", GOODBYE_SECONDS, self.abort)
        else:
            self._transport.close()

    def _at_rest(self) -> bool:
        closed = self.machine.phase is Phase.CLOSED
        return closed or (self.machine.idle and not self.machine.backlog)


_STORED = (
    "What it was charged stays charged; if its answer was stored, asking again returns it for free."
)
