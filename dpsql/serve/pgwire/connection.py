"""One connection: the callbacks of a socket around a ``Machine``.

The machine's requests run in the threads of lanes.
"""

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
    """Feeds bytes to the machine, sends its messages, and has its requests carried out."""

    def __init__(self, room: Listener) -> None:
        """The connection is not made yet."""
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
        """Begin with a new client. It is called again when TLS has begun."""
        first = self._transport is None
        self._transport = cast("asyncio.Transport", transport)
        if not first:
            return
        self._transport.set_write_buffer_limits(HIGH_WATER)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # to notice vanished clients
        self._room.open.add(self)
        if self._room.traffic.draining:
            self.machine.refuse(Fatal(STOPPING, "the database system is shutting down"))
            self._settle()
            return
        self._presence.peer = transport.get_extra_info("peername")
        self._room.traffic.newcomers.add(self, self._presence.peer)
        self._timers.set("start", self._room.limits.startup_seconds, self.abort)

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client. The first of them may begin TLS without a request for it."""
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
                self.machine.pause()  # other logins come first, over all connections of this one
            self.machine.receive(data)
            self._settle()

    def _login(self) -> Hashable:
        """The login that gets a turn for this connection; before the log-in, the address."""
        if self._known is None and self.machine.session is not None:
            self._known = self._room.login(self.machine.home, self.machine.role)
        return self._known or origin(self._presence.peer)

    def eof_received(self) -> bool:
        """Let the transport close, as the client has closed its side."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        """Clean up after a client that has left. Its statements are not begun, or are stopped.

        Charges that were made stay, and answers that were measured by then are stored.
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
        """Let answers wait and read nothing more, since the client reads slowly."""
        self._writable = False
        self._reads()
        self._await_reader()
        self._count_unsent()

    def resume_writing(self) -> None:
        """Go on, since the client has read what was sent."""
        self._writable = True
        self._unread.release()
        self._timers.cancel("send")
        self._reads()
        if self._held is not None:
            (result,), self._held = self._held, None
            self._deliver(result, None)

    def _count_unsent(self) -> None:
        """Count the bytes that wait for the client. Close the connection if they are too many."""
        ready = None if self._held is None else self._held[0]
        if self._transport is not None and not self._unread.fits(self._transport, ready):
            self.abort()

    def _await_reader(self, before: int | None = None) -> None:
        """Close the connection if the client receives nothing for ``send_seconds``."""
        if self._transport is None:
            return
        waiting = self._transport.get_write_buffer_size()
        if before is not None and waiting >= before:
            self.abort()
            return
        seconds = self._room.limits.send_seconds
        self._timers.set("send", seconds, lambda: self._await_reader(waiting))

    def _settle(self) -> None:
        """Send the machine's messages, and do what it asks for next."""
        machine, transport = self.machine, self._transport
        if transport is None:
            return
        data = machine.take()
        if machine.idle:
            self._presence.rest()
        if machine.phase is Phase.LOGIN:
            self._room.traffic.newcomers.begin(self)
        if machine.phase is Phase.READY and self._entering:
            self._entered()  # before the client is told, since it may cancel from then on
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
        """Read on, unless enough bytes wait already or the client does not read its answers."""
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
        """Check whether the client has left, as nothing is read that would tell."""
        if self._transport is not None and self._writable and has_left(self._transport):
            self.abort()
        else:
            self._timers.set("look", LOOK_SECONDS, self._look)

    def _entered(self) -> None:
        """End the log-in: remove its deadline, and allow the session's key to cancel."""
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
        """Begin the TLS handshake. Nothing is read before it, or the client's hello would be lost.

        Bytes that arrive after the handshake and before the task's next step came encrypted, and
        wait. ``hello`` has the first bytes of a client that began TLS without a request.
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
                self.abort()  # asyncio will not report a loss, as the connection was not made
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
        """Have a request carried out in a lane, with a statement timeout if it can have one."""
        if isinstance(ask, Pause):
            self._work.ask = ask
            self._room.traffic.turns.rest(self._login(), lambda: self._go_on(ask))
            return
        if not self._reading and self._transport is not None and has_left(self._transport):
            self.abort()  # the client has left: none of its waiting statements is begun
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
        """Wait before a log-in goes on. Meanwhile only the place of a newcomer is taken."""
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
        """Take the result of a request. A large one waits until the client has read."""
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
        """Tell the client that its statement is cancelled, and stop the engine."""
        if self._halt(reason):
            self._deliver(None, WireError(CANCELED, said, hint=_STORED))

    def _halt(self, reason: Reason) -> bool:
        """Stop the running request, if there is one. Its result is dropped."""
        if self.machine.idle or self._work.ask is None or self.machine.session is None:
            return False
        self._held = None
        self._work.stop(reason)
        return True

    def seen(self) -> Seen | None:
        """This connection as pg_stat_activity shows it; None before it has logged in."""
        return self._presence.describe(self.machine, self._room.clock)

    def stop(self, *, ends: bool) -> None:
        """Cancel the running statement, or end the session. May be called in any thread."""
        if ends:
            self._loop.call_soon_threadsafe(self._end)
        else:
            said = "canceling statement due to user request"
            self._loop.call_soon_threadsafe(self.interrupt, said, "cancel")

    def _end(self) -> None:
        """End the session, as another session of its login asked. Its charges stay."""
        said = Fatal(ENDED, "terminating connection due to administrator command")
        self._say_goodbye("terminate", said)

    def end_for_good(self) -> None:
        """Stop the running statement and tell the client, since the process ends."""
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
        """Close at once, and give the place back, which asyncio does not do in a handshake."""
        if self._shaking is not None:
            self._shaking.cancel()
        if self._transport is not None:
            self._transport.abort()
        self.connection_lost(None)

    give_way = abort  # another newcomer needs the place

    def leave(self) -> None:
        """Close once no statement is carried out, or at once if nobody has logged in."""
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
