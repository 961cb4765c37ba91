"""The simple protocol, as psql speaks it: statements as text, values as text."""

from __future__ import annotations

import datetime as dt
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.adversary.faces import protocol, replies
from tests.adversary.faces.protocol import ConnectionEnded, Conversation, Message
from tests.adversary.faces.servers import Servers
from tests.adversary.faces.session import Client, OpenWorld, absent
from tests.adversary.model import Failure, Role, Step, Transcript, Unopened, World


def constant(value: Any) -> str:
    """A value as PostgreSQL's text of it in SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dt.date | dt.datetime):
        value = value.isoformat(" ") if isinstance(value, dt.datetime) else value.isoformat()
    return "'" + str(value).replace("'", "''") + "'"


@dataclass
class WireClient(ABC):
    """One connection of the PostgreSQL protocol; how a statement is asked is the face's."""

    address: tuple[str, int]
    role: Role
    heard: bytearray

    def __post_init__(self) -> None:
        """Connect and log in."""
        self.talk = Conversation(self.address, self.role.name, self.role.password, heard=self.heard)

    def ask(self, step: Step) -> Transcript:
        """Ask, and read the answer to its end."""
        try:
            return replies.transcript(step, self.answer(step.text, step.parameters))
        except ConnectionEnded as ended:
            return _ended(step, ended.messages)
        except OSError as error:
            return Transcript(step, error=Failure("CONNECTION", type(error).__name__))

    def explain(self, step: Step) -> Transcript:
        """EXPLAIN is a statement, which takes no parameters here."""
        if step.parameters:
            return absent(step)
        asked = self.ask(Step("explain", f"EXPLAIN {step.text}", step.parameters))
        return replace(replies.lines(asked), step=step)

    def set(self, step: Step) -> Transcript:
        """A setting is a statement without parameters."""
        return self.ask(step)

    def cancel(self, step: Step) -> Transcript:
        """A cancel request comes on another connection while the statement runs."""
        timer = threading.Timer(step.seconds, self.talk.cancel)
        timer.start()
        try:
            return self.ask(step)
        finally:
            timer.cancel()
            timer.join()

    def close(self) -> None:
        """Say goodbye."""
        self.talk.close()

    @abstractmethod
    def answer(self, sql: str, parameters: Sequence[Any]) -> list[Message]:
        """All messages of the answer."""


class SimpleClient(WireClient):
    """Queries as text; parameters by PREPARE and EXECUTE."""

    def answer(self, sql: str, parameters: Sequence[Any]) -> list[Message]:
        """Messages up to ReadyForQuery; those of the last statement where there are several."""
        if parameters:
            prepared = self._once(f"PREPARE adversary AS {sql}")
            if any(each.kind == b"E" for each in prepared):
                return prepared
            given = ", ".join(map(constant, parameters))
            try:
                return self._once(f"EXECUTE adversary({given})")
            finally:
                self._once("DEALLOCATE adversary")
        return self._once(sql)

    def _once(self, sql: str) -> list[Message]:
        self.talk.send(protocol.query(sql))
        return self.talk.until_ready()


@dataclass(frozen=True)
class WireFace:
    """A face of the PostgreSQL protocol: ``make`` is its kind of client."""

    name: str
    servers: Servers
    make: Callable[[tuple[str, int], Role, bytearray], Client]

    def open(self, world: World, folder: Path, role: str = "") -> OpenWorld:
        """Log in as the role, at the endpoint of the folder."""
        server, heard = self.servers.at(world, folder), bytearray()
        first, roles = role or world.roles[0].name, {each.name: each for each in world.roles}

        def connect(name: str) -> Client:
            return self.make(server.address, roles[name], heard)

        opened = OpenWorld(world, folder, first, connect, server.reload, lambda: bytes(heard))
        try:
            opened.clients[first] = connect(first)
        except (ConnectionEnded, OSError) as error:
            raise Unopened(Failure("CONNECTION", str(error))) from error
        return opened


def simple_face(servers: Servers) -> WireFace:
    """The simple protocol."""
    return WireFace("simple", servers, SimpleClient)


def _ended(step: Step, messages: Sequence[Message]) -> Transcript:
    found = replies.transcript(step, messages)
    if found.error is not None:
        return found
    return Transcript(step, error=Failure("CONNECTION", "the connection ended"))
