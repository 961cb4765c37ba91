"""The protocol machine. It takes bytes, and gives bytes and requests, without I/O and clock.

It keeps these rules:

1. ``_TAKEN`` lists the messages that each phase takes. Any other message is a protocol violation.
2. A handler is a generator. When it yields a request, the machine stops reading until ``resume``
   or ``fail`` brings the result. Bytes that arrive meanwhile wait in ``Frames``.
3. Any error while a message is handled becomes one error message. After it, the simple protocol
   goes on, and the extended protocol skips to the next Sync.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping

from dpsql.diagnostics.operation.events import ConnectionEnded, StatementRefused, record
from dpsql.memory.pool import Full, Hold
from dpsql.serve.pgwire import messages as m
from dpsql.serve.pgwire import replies, startup
from dpsql.serve.pgwire.asking import Ask, Pause, Steps, Wait
from dpsql.serve.pgwire.commands import Own
from dpsql.serve.pgwire.conversation import end_script, handle
from dpsql.serve.pgwire.crowd import Crowd, Nobody, Place
from dpsql.serve.pgwire.errors import (
    CANCELED,
    PASSWORD,
    PROTOCOL,
    Fatal,
    WireError,
    wire_error,
)
from dpsql.serve.pgwire.execute import execute
from dpsql.serve.pgwire.frames import FEW, LARGEST_MESSAGE, Frames
from dpsql.serve.pgwire.session import MESSAGE, READ, Session
from dpsql.serve.pgwire.startup import Endpoint, Login, Wanted
from dpsql.serve.throttle import Attempt, Throttle


class Phase(enum.Enum):
    """The phase of a connection."""

    STARTUP = "waiting for the first message"
    ENCRYPTING = "waiting for the TLS handshake"
    LOGIN = "proving a password"
    READY = "between or within messages"
    SKIPPING = "after an error, until Sync"
    CLOSED = "nothing more is read"


_EXTENDED = (m.Parse, m.Bind, m.Describe, m.Execute, m.Close, m.Flush)
_TAKEN: dict[Phase, tuple[type, ...]] = {
    Phase.LOGIN: (m.Secret, m.Terminate),
    Phase.READY: (m.SimpleQuery, *_EXTENDED, m.Sync, m.Terminate, m.Ignored),
    Phase.SKIPPING: (m.SimpleQuery, *_EXTENDED, m.Sync, m.Terminate, m.Ignored),
}


class Machine:
    """One connection. After ``receive``, ``take`` has bytes to send, and ``ask`` a request."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        admit: Callable[[Endpoint, str], int] = lambda *_: LARGEST_MESSAGE,
        crowd: Crowd | None = None,
        attempt: Callable[[str], Attempt] | None = None,
    ) -> None:
        """Wait for the first message.

        ``admit`` refuses a user who has proved the password, or returns the size of the largest
        message. ``attempt`` begins a log-in under a name.
        """
        self._endpoint, self._admit, self._crowd = endpoint, admit, crowd or Nobody()
        self._attempt = attempt or (lambda name: Throttle().attempt(None, name))
        self.home = endpoint
        """The endpoint of the client's database, once the client has named it."""
        self._frames = Frames()
        self._out: list[bytes] = []
        self._steps: Steps | None = None
        self._hold: Hold | None = None
        self._simple = True
        self._login: Login | None = None
        self._wanted: Wanted | None = None
        self._encrypted = False
        self._encryptions = set(m.ENCRYPTIONS)
        self.phase = Phase.STARTUP
        self.ask: Ask | None = None
        self.session: Session | None = None
        self.cancel: m.Cancel | None = None
        self.key: tuple[int, bytes] | None = None

    @property
    def role(self) -> str:
        """The login that the client claims, or has proved."""
        return "" if self._wanted is None else self._wanted.role

    @property
    def database(self) -> str:
        """The database that the client has named."""
        return "" if self._wanted is None else self._wanted.database

    @property
    def idle(self) -> bool:
        """Whether no message is being carried out."""
        return self._steps is None

    @property
    def backlog(self) -> int:
        """The number of bytes that were received and not yet read."""
        return self._frames.waiting

    @property
    def hungry(self) -> bool:
        """Whether more bytes should be received before the waiting ones have been read."""
        return self._frames.hungry

    def drop(self) -> None:
        """Drop all received and unsent bytes, since the client has left."""
        self._close()
        self._frames.drop()
        self._out.clear()
        self._hold = self.session = self._login = None

    def receive(self, data: bytes) -> None:
        """Take bytes from the client."""
        if self.phase is Phase.CLOSED:
            return
        self._read_on(data)

    def take(self) -> bytes:
        """The bytes to send now."""
        if self.session is not None and self.session.out:
            self._out += self.session.out
            self.session.out.clear()
        data = b"".join(self._out)
        self._out.clear()
        return data

    def encrypting(self) -> None:
        """Wait for a TLS handshake that began without a request. Nothing is read before its end."""
        assert self.phase is Phase.STARTUP
        self.phase = Phase.ENCRYPTING

    def encrypted(self) -> None:
        """Go on after the TLS handshake."""
        assert self.phase is Phase.ENCRYPTING
        self._encrypted, self.phase = True, Phase.STARTUP
        self._read_on()

    def resume(self, result: object) -> None:
        """Go on with the result of the request."""
        self._rested()
        if self._steps is not None:
            self._run(lambda steps: steps.send(result))
        self._read_on()

    def fail(self, error: BaseException) -> None:
        """Go on with the error of the request."""
        self._rested()
        self._run(lambda steps: steps.throw(error))
        self._read_on()

    def _rested(self) -> None:
        self.ask = None
        if self.session is not None:
            self.session.turn = 0

    def refuse(self, error: WireError) -> None:
        """End the connection with an error."""
        if error.sqlstate != PASSWORD:  # a failed log-in has been recorded with its address
            record(ConnectionEnded(error.code, self.role))
        self._send(replies.error(error, "FATAL"))
        self._close()

    def _read_on(self, data: bytes = b"") -> None:
        """Handle messages one after the other, until one is not whole or waits for a request.

        After some work other connections have their turn, however much this one has sent.
        """
        try:
            self._frames.feed(data)
            while self._steps is None and self.ask is None and self._reading():
                if self.phase is Phase.STARTUP:
                    whole = self._frames.startup()
                    if whole is None:
                        return
                    self._started(m.read_startup(whole))
                else:
                    framed = self._frames.message()
                    if framed is None:
                        return
                    self._message(*framed)
                    if self.session is not None and self.session.tired and self.backlog:
                        self.pause()
        except Fatal as error:
            self.refuse(error)
        except WireError as error:
            self.refuse(Fatal(error.sqlstate, error.message))

    def pause(self) -> None:
        """Let other connections have their turn before this one goes on."""
        if self._steps is None and self.session is not None and self._reading():
            self.ask = self.ask or Pause()

    def _reading(self) -> bool:
        return self.phase not in (Phase.CLOSED, Phase.ENCRYPTING)

    def _started(self, message: m.Startup | m.Cancel | m.Encrypt) -> None:
        if isinstance(message, m.Cancel):
            self.cancel = message
            self._close()
        elif isinstance(message, m.Encrypt):
            self._encryption(message)
        else:
            self._asked(message)

    def _encryption(self, message: m.Encrypt) -> None:
        """Answer a request for encryption. Each kind may come once, and none after TLS began."""
        if message not in self._encryptions:
            raise m.unsupported_protocol(m.GSSENC if message.gss else m.SSL)
        self._encryptions.remove(message)
        if message.gss or self._encrypted or not self._endpoint.encrypts:
            self._send(b"N")
            return
        if self._frames.waiting:
            raise Fatal(PROTOCOL, "received unencrypted data after SSL request")
        self._send(b"S")
        self._encryptions.clear()
        self.phase = Phase.ENCRYPTING

    def _asked(self, message: m.Startup) -> None:
        if self._endpoint.requires_tls and not self._encrypted:
            raise Fatal("28000", "this server takes encrypted connections only (sslmode=require)")
        self._wanted = startup.read_start_parameters(message)
        self._send(startup.negotiation(message))
        self.home = self._endpoint.at(self._wanted.database)
        self._login = Login(self.home, self._wanted, encrypted=self._encrypted)
        self._send(self._login.offer())
        self.phase = Phase.LOGIN

    def _message(self, kind: int, body: bytes) -> None:
        if self.session is not None:
            self.session.turn += MESSAGE + READ * len(body)
        try:
            message = m.read_message(kind, body)
        except Fatal:
            raise
        except WireError as error:
            if self.phase is Phase.LOGIN:
                raise
            self._failed(error, simple=kind == ord("Q"))
            return
        if not isinstance(message, _TAKEN[self.phase]):
            raise Fatal(PROTOCOL, f"unexpected message type {kind}")
        try:
            if self.session is not None and len(body) > FEW:
                text = message.text if isinstance(message, m.SimpleQuery | m.Parse) else ""
                self._hold = self.session.hold_message(len(body), text)
        except Full as error:
            self._failed(wire_error(error), simple=kind == ord("Q"))
        else:
            self._act(message)

    def _act(self, message: m.Message) -> None:
        if isinstance(message, m.Terminate):
            self._close()
        elif isinstance(message, m.Secret):
            self._steps = self._secret(message)
            self._run(next)
        else:
            self._said(message)
        if self._steps is None:
            self._hold = None

    def _secret(self, message: m.Secret) -> Steps:
        assert self._login is not None
        if self._login.awaits_proof:
            yield from self._prove(self._login, message, self._attempt(self.role))
        else:
            self._send((yield from self._login.step(message.body))[0])

    def _prove(self, login: Login, message: m.Secret, attempt: Attempt) -> Steps:
        """Check a proof, after the delay of log-ins of this name from this address.

        If other tries of this name and address fail during the check, the result is delayed by
        their failures too, whether it is right or wrong.
        """
        yield from startup.wait_in_queue(attempt)
        before, wrong, reply = attempt.failures, None, b""
        try:
            reply, _ = yield from login.step(message.body)
        except Fatal as error:
            wrong = error
        late = attempt.delay if attempt.failures > before else 0.0
        if wrong is not None and wrong.sqlstate == PASSWORD:
            attempt.fail(self.database)  # before the delay: a client that leaves then counts too
        if late:
            yield Wait(late)
        if wrong is not None:
            raise wrong
        attempt.succeed()
        self._send(reply)
        yield from self._enter()

    def _enter(self) -> Steps:
        """Open the session after a right proof, and send the messages that a client expects."""
        assert self._wanted is not None
        asked = self._wanted
        try:
            largest = self._admit(self.home, asked.role)
            process = self._endpoint.process()
            while self._crowd.holds(process):
                process = self._endpoint.process()
            place = Place(process, self._crowd, self._variables)
            backend = self.home.enter(asked.role, asked.database, asked.session, place)
        except Exception as error:
            told = wire_error(error)
            raise Fatal(told.sqlstate, told.message, told.detail, told.hint) from error
        variables = startup.variables(asked)
        owner = self.home.admission(asked.role).policy, asked.role
        self.session = Session(backend, variables, process, owner)
        for name, value in variables.reported().items():
            self._send(replies.parameter_status(name, value))
        self.key = process, startup.cancel_key(self._endpoint, asked.minor)
        self._send(replies.key_data(*self.key))
        self._frames.admit(largest, owner)
        self._login, self.phase, self._simple = None, Phase.READY, True
        yield from self._settings(startup.own_settings(asked))

    def _variables(self) -> Mapping[str, str]:
        return {} if self.session is None else self.session.variables.all()

    def _settings(self, statements: list[str]) -> Steps:
        """Apply options such as -c dpsql.epsilon=0.1, before the first ReadyForQuery."""
        session = self.session
        assert session is not None
        for statement in statements:
            try:
                yield from execute(session, Own(statement, returns_rows=False))
                session.out.pop()
            except Exception as error:
                told = wire_error(error)
                raise Fatal(told.sqlstate, told.message, told.detail, told.hint) from error
        session.backend.begin()

    def _said(self, message: m.Message) -> None:
        assert self.session is not None
        if isinstance(message, m.Sync):
            self.phase = Phase.READY
            end_script(self.session)
        elif self.phase is Phase.READY:
            self._simple = isinstance(message, m.SimpleQuery)
            self._steps = handle(self.session, message)
            self._run(next)

    def _run(self, step: Callable[[Steps], Ask]) -> None:
        """Run a handler up to its next request, its end or its failure."""
        assert self._steps is not None
        try:
            self.ask = step(self._steps)
        except StopIteration:
            self._done()
        except Fatal as error:
            self.refuse(error)
        except Exception as error:  # noqa: BLE001 (whatever it is, the client is told one thing)
            told = wire_error(error)
            if self.session is None:
                self.refuse(Fatal(told.sqlstate, told.message))
            else:
                self._failed(told, simple=self._simple)

    def _done(self) -> None:
        self._steps = self._hold = None
        if self.session is not None and self._simple:
            end_script(self.session)

    def _failed(self, error: WireError, *, simple: bool) -> None:
        self._steps = self._hold = None
        if self.phase is Phase.SKIPPING:
            return
        assert self.session is not None
        if error.sqlstate != CANCELED:  # the stop itself is recorded already
            process, place = self.session.process, error.position or 0
            record(StatementRefused(error.code, self.role, "postgres", process, place))
        self.session.transaction.failed()
        self.session.send(replies.error(error))
        if simple:
            end_script(self.session)
        else:
            self.phase = Phase.SKIPPING

    def _send(self, data: bytes) -> None:
        (self._out if self.session is None else self.session.out).append(data)

    def _close(self) -> None:
        self.phase, self._steps, self.ask = Phase.CLOSED, None, None
