"""The protocol machine: bytes in, bytes and requests out. There is no I/O and no clock in it.

House rules:

1. ``_TAKEN`` says which messages each phase takes; everything else is a protocol violation.
2. A handler is a generator. When it asks for something, the machine stops reading until ``resume``
   or ``fail`` brings the result; what arrives meanwhile waits in ``Frames``.
3. Whatever goes wrong while a message is handled becomes one error message. After it, the simple
   protocol goes on, and the extended protocol skips to the next Sync.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping

from dpsql.serve.pgwire import hearsay, replies, startup
from dpsql.serve.pgwire import messages as m
from dpsql.serve.pgwire.asking import Ask, Pause, Steps
from dpsql.serve.pgwire.commands import Own
from dpsql.serve.pgwire.conversation import handle, ready
from dpsql.serve.pgwire.crowd import Crowd, Nobody, Place
from dpsql.serve.pgwire.errors import PASSWORD, PROTOCOL, Fatal, WireError, wire_error
from dpsql.serve.pgwire.execute import execute
from dpsql.serve.pgwire.frames import LARGEST_MESSAGE, Frames
from dpsql.serve.pgwire.session import MESSAGE, READ, Session
from dpsql.serve.pgwire.startup import House, Login, Wanted

WRONG_PASSWORD_DELAY = 0.3


class Phase(enum.Enum):
    """Where a connection is."""

    STARTUP = "waiting for the first message"
    ENCRYPTING = "waiting for the TLS handshake"
    LOGIN = "proving a password"
    READY = "between or within messages"
    SKIPPING = "after an error, until Sync"
    CLOSED = "nothing more is read"


_EXTENDED = (m.Parse, m.Bind, m.Describe, m.Execute, m.Close, m.Flush)
_TAKEN: dict[Phase, tuple[type, ...]] = {
    Phase.LOGIN: (m.Secret, m.Terminate),
    Phase.READY: (m.Query, *_EXTENDED, m.Sync, m.Terminate, m.Ignored),
    Phase.SKIPPING: (m.Query, *_EXTENDED, m.Sync, m.Terminate, m.Ignored),
}


class Machine:
    """One connection. Feed it with ``receive``; then send what ``take`` gives and mind ``ask``."""

    def __init__(
        self,
        house: House,
        *,
        admit: Callable[[House, str], int] = lambda *_: LARGEST_MESSAGE,
        crowd: Crowd | None = None,
    ) -> None:
        """Waiting for the first message.

        ``admit`` may refuse a role that has proved itself, or says how large its messages may be.
        """
        self._house, self._admit, self._crowd = house, admit, crowd or Nobody()
        self.home = house
        """Who takes this client in, once it has said which database it wants."""
        self._frames = Frames()
        self._out: list[bytes] = []
        self._steps: Steps | None = None
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
        self.delay = 0.0

    @property
    def role(self) -> str:
        """Who it is, or claims to be."""
        return "" if self._wanted is None else self._wanted.role

    @property
    def database(self) -> str:
        """What it has connected to."""
        return "" if self._wanted is None else self._wanted.database

    @property
    def idle(self) -> bool:
        """Whether nothing is being carried out."""
        return self._steps is None

    @property
    def backlog(self) -> int:
        """How much was received and not yet read."""
        return self._frames.waiting

    @property
    def largest(self) -> int:
        """How large a message may be now."""
        return self._frames.largest

    def receive(self, data: bytes) -> None:
        """Take bytes from the client."""
        if self.phase is Phase.CLOSED:
            return
        self._frames.feed(data)
        self._read_on()

    def take(self) -> bytes:
        """What is to be sent now."""
        if self.session is not None and self.session.out:
            self._out += self.session.out
            self.session.out.clear()
        data = b"".join(self._out)
        self._out.clear()
        return data

    def encrypting(self) -> None:
        """A handshake came first, without having been asked for: nothing is read before it is done."""
        assert self.phase is Phase.STARTUP
        self.phase = Phase.ENCRYPTING

    def encrypted(self) -> None:
        """The TLS handshake is done."""
        assert self.phase is Phase.ENCRYPTING
        self._encrypted, self.phase = True, Phase.STARTUP
        self._read_on()

    def resume(self, result: object) -> None:
        """What was asked for is here."""
        self._rested()
        if self._steps is not None:
            self._run(lambda steps: steps.send(result))
        self._read_on()

    def fail(self, error: BaseException) -> None:
        """What was asked for cannot be had."""
        self._rested()
        self._run(lambda steps: steps.throw(error))
        self._read_on()

    def _rested(self) -> None:
        self.ask = None
        if self.session is not None:
            self.session.turn = 0

    def refuse(self, error: WireError) -> None:
        """End the connection with an error."""
        self._send(replies.error(error, "FATAL"))
        self._close()

    def _read_on(self) -> None:
        """Messages one after the other, until one is not whole or waits for something.

        After some work others have their turn, however much has been sent at once.
        """
        try:
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
                    self._pause()
        except Fatal as error:
            self.refuse(error)
        except WireError as error:
            self.refuse(Fatal(error.sqlstate, error.message))

    def _pause(self) -> None:
        """Let others have their turn, when this one has gone on for some time and would go on."""
        tired = self.session is not None and self.session.tired
        if tired and self._steps is None and self._reading() and self.backlog:
            self.ask = Pause()

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
        """Each encryption may be asked for once, and none after TLS has begun."""
        if message not in self._encryptions:
            raise m.unsupported(m.GSSENC if message.gss else m.SSL)
        self._encryptions.remove(message)
        if message.gss or self._encrypted or not self._house.encrypts:
            self._send(b"N")
            return
        if self._frames.waiting:
            raise Fatal(PROTOCOL, "received unencrypted data after SSL request")
        self._send(b"S")
        self._encryptions.clear()
        self.phase = Phase.ENCRYPTING

    def _asked(self, message: m.Startup) -> None:
        if self._house.requires_tls and not self._encrypted:
            raise Fatal("28000", "this server takes encrypted connections only (sslmode=require)")
        self._wanted = startup.wanted(message)
        self._send(startup.negotiation(message))
        self.home = self._house.at(self._wanted.database)
        self._login = Login(self.home, self._wanted, encrypted=self._encrypted)
        self._send(self._login.offer())
        self.phase = Phase.LOGIN

    def _message(self, kind: int, body: bytes) -> None:
        if self.session is not None:
            self.session.turn += MESSAGE + READ * len(body)
        try:
            message = m.read(kind, body)
        except Fatal:
            raise
        except WireError as error:
            if self.phase is Phase.LOGIN:
                raise
            self._failed(error, simple=kind == ord("Q"))
            return
        if not isinstance(message, _TAKEN[self.phase]):
            raise Fatal(PROTOCOL, f"unexpected message type {kind}")
        if isinstance(message, m.Terminate):
            self._close()
        elif isinstance(message, m.Secret):
            self._steps = self._secret(message)
            self._run(next)
        else:
            self._said(message)

    def _secret(self, message: m.Secret) -> Steps:
        assert self._login is not None
        try:
            reply, proved = yield from self._login.step(message.body)
        except Fatal as error:
            self.delay = WRONG_PASSWORD_DELAY if error.sqlstate == PASSWORD else 0.0
            raise
        self._send(reply)
        if proved:
            yield from self._enter()

    def _enter(self) -> Steps:
        """The role has proved itself: open its session and say what a client waits for."""
        assert self._wanted is not None
        asked = self._wanted
        try:
            largest = self._admit(self.home, asked.role)
            process = self._house.process()
            while self._crowd.holds(process):
                process = self._house.process()
            place = Place(process, self._crowd, self._variables)
            backend = self.home.enter(asked.role, asked.database, asked.session, place)
        except Exception as error:
            told = wire_error(error)
            raise Fatal(told.sqlstate, told.message, told.detail, told.hint) from error
        variables = startup.variables(asked)
        self.session = Session(backend, variables, process)
        hearsay.entered(process, asked.role, asked.database, variables.get("application_name"))
        for name, value in variables.reported().items():
            self._send(replies.parameter_status(name, value))
        self.key = process, startup.cancel_key(self._house, asked.minor)
        self._send(replies.key_data(*self.key))
        self._frames.largest = largest
        self._login, self.phase, self._simple = None, Phase.READY, True
        yield from self._settings(startup.own_settings(asked))

    def _variables(self) -> Mapping[str, str]:
        return {} if self.session is None else self.session.variables.all()

    def _settings(self, statements: list[str]) -> Steps:
        """Options such as -c dpsql.epsilon=0.1, before the first ReadyForQuery."""
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
            ready(self.session)
        elif self.phase is Phase.READY:
            self._simple = isinstance(message, m.Query)
            self._steps = handle(self.session, message)
            self._run(next)

    def _run(self, step: Callable[[Steps], Ask]) -> None:
        """Carry a handler on to its next request, its end or its failure."""
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
        self._steps = None
        if self.session is not None and self._simple:
            ready(self.session)

    def _failed(self, error: WireError, *, simple: bool) -> None:
        self._steps = None
        if self.phase is Phase.SKIPPING:
            return
        assert self.session is not None
        self.session.transaction.failed()
        self.session.send(replies.error(error))
        if simple:
            ready(self.session)
        else:
            self.phase = Phase.SKIPPING

    def _send(self, data: bytes) -> None:
        (self._out if self.session is None else self.session.out).append(data)

    def _close(self) -> None:
        self.phase, self._steps, self.ask = Phase.CLOSED, None, None
