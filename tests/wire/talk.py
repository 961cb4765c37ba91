"""A client without a socket: it drives a machine with bytes, and carries out what the machine asks."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import struct
from collections.abc import Callable, Iterable

from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.pgwire.machine import Machine, Phase

NONCE = "fyko+d2lbbFgONRv9qkxdawL"


class FixedHouse:
    """A house whose randomness is always the same, so that conversations can be replayed."""

    def __init__(self, house: ServiceEndpoint) -> None:
        self._house = house
        self.encrypts, self.requires_tls, self.binding, self.cleartext = False, False, None, False
        self.enter, self.admission = house.enter, house.admission

    def at(self, _: str) -> FixedHouse:
        return self

    def verifier(self, role: str) -> object:
        return self._house.verifier(role)

    def process(self) -> int:
        return 42

    def random(self, count: int) -> bytes:
        return bytes(range(count))


@functools.cache
def _salted(password: str, salt: str, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), iterations)


def message(kind: str, body: bytes = b"") -> bytes:
    return kind.encode() + struct.pack("!i", len(body) + 4) + body


def startup(role: str, **more: str) -> bytes:
    pairs = {"user": role, "database": "shop", **more}
    body = struct.pack("!i", 3 << 16)
    body += b"".join(k.encode() + b"\0" + v.encode() + b"\0" for k, v in pairs.items()) + b"\0"
    return struct.pack("!i", len(body) + 4) + body


def query(sql: str) -> bytes:
    return message("Q", sql.encode() + b"\0")


def parse(name: str, sql: str, *oids: int) -> bytes:
    types = struct.pack(f"!h{len(oids)}I", len(oids), *oids)
    return message("P", name.encode() + b"\0" + sql.encode() + b"\0" + types)


def bind(portal: str, name: str, *values: bytes | None, code: int = 0) -> bytes:
    body = portal.encode() + b"\0" + name.encode() + b"\0" + struct.pack("!hh", 0, len(values))
    for value in values:
        body += b"\xff\xff\xff\xff" if value is None else struct.pack("!i", len(value)) + value
    return message("B", body + struct.pack("!hh", 1, code))


def describe(kind: str, name: str) -> bytes:
    return message("D", kind.encode() + name.encode() + b"\0")


def execute(portal: str, rows: int = 0) -> bytes:
    return message("E", portal.encode() + b"\0" + struct.pack("!i", rows))


SYNC = message("S")


class Client:
    """One conversation."""

    def __init__(self, house: object) -> None:
        self.machine = Machine(house)  # type: ignore[arg-type]
        self.received = b""

    def send(self, data: bytes) -> bytes:
        """Feed bytes; whatever the machine asks for is carried out at once."""
        self.machine.receive(data)
        while self.machine.ask is not None:
            session = self.machine.session
            try:
                found = self.machine.ask.perform(None if session is None else session.backend)  # type: ignore[arg-type]
            except Exception as error:  # noqa: BLE001
                self.machine.fail(error)
            else:
                self.machine.resume(found)
        said = self.machine.take()
        self.received += said
        return said

    def login(self, role: str, password: str, **more: str) -> bytes:
        self.send(startup(role, **more))
        bare = f"n=,r={NONCE}"
        first = f"n,,{bare}".encode()
        said = self.send(message("p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first))
        challenge = said[9:].decode()
        fields = dict(part.split("=", 1) for part in challenge.split(","))
        salted = _salted(password, fields["s"], int(fields["i"]))
        client = hmac.digest(salted, b"Client Key", "sha256")
        without = f"c=biws,r={fields['r']}"
        signed = f"{bare},{challenge},{without}".encode()
        mask = hmac.digest(hashlib.sha256(client).digest(), signed, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client, mask, strict=True))).decode()
        return self.send(message("p", f"{without},p={proof}".encode()))

    @property
    def closed(self) -> bool:
        return self.machine.phase is Phase.CLOSED


def kinds(data: bytes) -> str:
    """The type bytes of the messages in a stream."""
    return "".join(kind for kind, _ in messages(data))


def messages(data: bytes) -> Iterable[tuple[str, bytes]]:
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("!i", data, at + 1)
        yield chr(data[at]), data[at + 5 : at + 1 + length]
        at += 1 + length


def fields(body: bytes) -> dict[str, str]:
    """The fields of an error or notice."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def errors(data: bytes) -> list[str]:
    return [fields(body)["C"] for kind, body in messages(data) if kind == "E"]


Splitter = Callable[[bytes], Iterable[bytes]]
