"""The extended protocol: statements and portals, text and binary, row limits, errors in pipelines."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.adversary.faces import protocol
from tests.adversary.faces.protocol import Message
from tests.adversary.faces.servers import Servers
from tests.adversary.faces.simple import WireClient, WireFace
from tests.adversary.faces.values import EPOCH

WRONG = "SELECT no_such_column FROM no_such_table"
"""What goes before a statement in a pipeline: its error must not be that of the statement."""
TEXT, BINARY = 0, 1


@dataclass(frozen=True)
class Manner:
    """How the protocol is used."""

    format: int = TEXT
    """Of parameters and of values."""
    named: bool = False
    """Whether statement and portal have names, and are described on the way."""
    kept: bool = False
    """Whether a statement stays prepared, for the next time that it is asked."""
    most: int = 0
    """Rows that one Execute may bring; 0 is all."""
    pipelined: bool = False
    """Whether a wrong statement goes before it in the same packet."""


MANNERS = {
    "extended": Manner(),
    "extended binary": Manner(BINARY, named=True, kept=True),
    "extended portal": Manner(BINARY, named=True, most=1),
    "extended pipeline": Manner(pipelined=True),
}


def as_text(value: Any) -> bytes | None:
    """A value in the text format."""
    if value is None:
        return None
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, dt.datetime):
        return value.isoformat(" ").encode()
    return str(value).encode()


def as_binary(value: Any, oid: int) -> bytes | None:
    """A value in the binary format of the type that the server found for it."""
    if value is None:
        return None
    if isinstance(value, dt.datetime) and oid in (1114, 1184):
        return struct.pack(
            "!q", (value.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)
        )
    if isinstance(value, dt.date) and oid == 1082:
        return struct.pack("!i", (value - EPOCH.date()).days)
    shape = {20: "!q", 21: "!h", 23: "!i", 700: "!f", 701: "!d", 16: "!?"}.get(oid)
    return str(value).encode() if shape is None else struct.pack(shape, value)


@dataclass
class ExtendedClient(WireClient):
    """Parse, Bind, Describe, Execute, Sync, in one manner."""

    manner: Manner = Manner()
    asked: int = 0
    prepared: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """Names of statements that stay prepared, with the types of their parameters."""

    def answer(self, sql: str, parameters: Sequence[Any]) -> list[Message]:
        """The messages that matter to the statement, whatever came around them."""
        if self.manner.named:
            return self._by_name(sql, parameters)
        sent = [
            protocol.parse("", sql), protocol.bind("", "", [as_text(v) for v in parameters]),
            protocol.describe("P", ""), protocol.execute("", self.manner.most), protocol.SYNC,
        ]  # fmt: skip
        if self.manner.pipelined:
            before = [protocol.parse("", WRONG), *sent[1:]]
            self.talk.send(*before, *sent)
            wrong = self.talk.until_ready()
            if b"".join(each.kind for each in wrong).strip(b"12") != b"EZ":
                raise ValueError(f"a wrong statement was answered by {wrong}")
        else:
            self.talk.send(*sent)
        return self.talk.until_ready()

    def _by_name(self, sql: str, parameters: Sequence[Any]) -> list[Message]:
        """Prepare and describe first, then bind in the types that were found."""
        self.asked += 1
        portal = f"portal {self.asked}"
        if sql not in self.prepared:
            refused = self._prepare(sql)
            if refused:
                return refused
        name, oids = self.prepared[sql]
        if not self.manner.kept:
            del self.prepared[sql]
        if len(oids) != len(parameters):
            raise ValueError(f"{len(oids)} types for {len(parameters)} parameters")
        values = [as_binary(v, oid) for v, oid in zip(parameters, oids, strict=True)]
        self.talk.send(
            protocol.bind(portal, name, values, [BINARY] if values else [], [self.manner.format]),
            protocol.describe("P", portal), protocol.FLUSH,
        )  # fmt: skip
        found = self.talk.until(b"T", b"n", b"E")
        while found[-1].kind not in (b"C", b"I", b"E"):
            self.talk.send(protocol.execute(portal, self.manner.most), protocol.FLUSH)
            found += self.talk.until(b"C", b"I", b"E", b"s")
        if not self.manner.kept:
            self.talk.send(protocol.close("S", name))
        self.talk.send(protocol.SYNC)
        return found + self.talk.until_ready()

    def _prepare(self, sql: str) -> list[Message]:
        """Keep the statement under a name; the messages of its refusal, if it is refused."""
        name = f"statement {self.asked}"
        self.talk.send(protocol.parse(name, sql), protocol.describe("S", name), protocol.SYNC)
        told = self.talk.until_ready()
        types = [each.body for each in told if each.kind == b"t"]
        if not types:
            return told
        (count,) = struct.unpack("!h", types[0][:2])
        self.prepared[sql] = name, struct.unpack(f"!{count}I", types[0][2:])
        return []


def extended_faces(servers: Servers) -> tuple[WireFace, ...]:
    """One face for each manner."""
    return tuple(
        WireFace(name, servers, partial(ExtendedClient, manner=manner))
        for name, manner in MANNERS.items()
    )
