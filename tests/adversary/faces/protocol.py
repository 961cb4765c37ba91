"""A client of the PostgreSQL protocol on a bare socket: what is sent is what the caller wrote.

It follows the protocol's documentation and RFC 7677. It imports nothing of dpsql, so that a message
that dpsql reads wrongly is not written wrongly here too.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import secrets
import socket
import ssl
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

PROTOCOL_3_0 = 3 << 16
CANCEL_REQUEST = 80877102
SSL_REQUEST = 80877103
SASL, SASL_CONTINUE, SASL_FINAL, AUTHENTICATION_OK = 10, 11, 12, 0
RECEIVED_AT_ONCE = 1 << 16


class ConnectionEnded(Exception):
    """The server ended the conversation; ``messages`` holds what it said last."""

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        """Keep the last words, of which one may be a FATAL error."""
        self.messages = tuple(messages)
        super().__init__(", ".join(f"{m.kind!r} {m.body!r}" for m in messages[-2:]))


@dataclass(frozen=True)
class Message:
    """One message of the server."""

    kind: bytes
    body: bytes


def message(kind: bytes, body: bytes = b"") -> bytes:
    """A message with its length."""
    return kind + struct.pack("!i", len(body) + 4) + body


def text(value: str) -> bytes:
    """A string as the protocol ends it."""
    return value.encode() + b"\0"


def query(sql: str) -> bytes:
    """A simple query."""
    return message(b"Q", text(sql))


def parse(name: str, sql: str, oids: Sequence[int] = ()) -> bytes:
    """Prepare a statement; an oid of 0 leaves the type to the server."""
    return message(b"P", text(name) + text(sql) + struct.pack(f"!h{len(oids)}I", len(oids), *oids))


def bind(
    portal: str, name: str, values: Sequence[bytes | None] = (),
    given: Sequence[int] = (), wanted: Sequence[int] = (),
) -> bytes:  # fmt: skip
    """Bind values to a portal; ``given`` and ``wanted`` are format codes (0 text, 1 binary)."""
    body = text(portal) + text(name) + struct.pack(f"!h{len(given)}h", len(given), *given)
    body += struct.pack("!h", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return message(b"B", body + struct.pack(f"!h{len(wanted)}h", len(wanted), *wanted))


def describe(kind: str, name: str) -> bytes:
    """Describe a statement (S) or a portal (P)."""
    return message(b"D", kind.encode() + text(name))


def execute(portal: str, most: int = 0) -> bytes:
    """Execute a portal, for at most so many rows; 0 is all."""
    return message(b"E", text(portal) + struct.pack("!i", most))


def close(kind: str, name: str) -> bytes:
    """Close a statement (S) or a portal (P)."""
    return message(b"C", kind.encode() + text(name))


SYNC, FLUSH, TERMINATE = message(b"S"), message(b"H"), message(b"X")


def startup(user: str, database: str, options: Sequence[tuple[str, str]] = ()) -> bytes:
    """The first message of a connection."""
    pairs = [("user", user), ("database", database), *options]
    body = struct.pack("!i", PROTOCOL_3_0) + b"".join(text(k) + text(v) for k, v in pairs) + b"\0"
    return struct.pack("!i", len(body) + 4) + body


def fields(body: bytes) -> dict[str, str]:
    """The fields of an error or a notice by their letters."""
    parts = (part for part in body.split(b"\0") if part)
    return {chr(part[0]): part[1:].decode() for part in parts}


@dataclass
class Conversation:
    """One connection after its log-in; ``heard`` is every byte that the server sent."""

    address: tuple[str, int]
    user: str
    password: str
    database: str = "policy"
    seconds: float = 60.0
    options: Sequence[tuple[str, str]] = ()
    heard: bytearray = field(default_factory=bytearray)
    process: int = 0
    key: bytes = b""
    exchange: Scram | None = None
    """How it proves the password; as it should if none is given."""
    context: ssl.SSLContext | None = None
    """With one, the connection is encrypted."""

    def __post_init__(self) -> None:
        """Connect and log in."""
        self._unread = bytearray()
        self._socket = socket.create_connection(self.address, self.seconds)
        try:
            if self.context is not None:
                self._socket.sendall(struct.pack("!ii", 8, SSL_REQUEST))
                if self._socket.recv(1) != b"S":
                    raise ConnectionEnded
                self._socket = self.context.wrap_socket(self._socket)
            self._log_in()
        except BaseException:
            self._socket.close()
            raise

    def send(self, *messages: bytes) -> None:
        """Send messages as they are."""
        self._socket.sendall(b"".join(messages))

    def read(self) -> Message:
        """The next message."""
        head = self._take(5)
        kind, (length,) = head[:1], struct.unpack("!i", head[1:])
        return Message(kind, self._take(length - 4))

    def until(self, *kinds: bytes) -> list[Message]:
        """All messages up to the first of one of these kinds, and it."""
        found: list[Message] = []
        try:
            while not found or found[-1].kind not in kinds:
                found.append(self.read())
        except ConnectionEnded:
            raise ConnectionEnded(found) from None
        return found

    def until_ready(self) -> list[Message]:
        """All messages of an answer, with ReadyForQuery at the end."""
        return self.until(b"Z")

    def cancel(self) -> None:
        """Ask the server on another connection to cancel what runs here."""
        with socket.create_connection(self.address, self.seconds) as other:
            body = struct.pack("!ii", CANCEL_REQUEST, self.process) + self.key
            other.sendall(struct.pack("!i", len(body) + 4) + body)
            other.recv(1)

    def close(self) -> None:
        """Say goodbye and leave."""
        with contextlib.suppress(OSError):  # the server may have gone first
            self.send(TERMINATE)
        self._socket.close()

    def drop(self) -> None:
        """Leave without a word."""
        self._socket.close()

    def _take(self, length: int) -> bytes:
        while len(self._unread) < length:
            try:
                piece = self._socket.recv(RECEIVED_AT_ONCE)
            except ConnectionError:
                piece = b""
            if not piece:
                raise ConnectionEnded
            self.heard += piece
            self._unread += piece
        taken = bytes(self._unread[:length])
        del self._unread[:length]
        return taken

    def _log_in(self) -> None:
        self.send(startup(self.user, self.database, self.options))
        exchange = self.exchange or Scram(self.password)
        for each in iter(self.read, None):
            if each.kind == b"E":
                raise ConnectionEnded([each])
            if each.kind == b"K":
                self.process, self.key = struct.unpack("!i", each.body[:4])[0], each.body[4:]
            elif each.kind == b"R":
                self._authenticate(exchange, each.body)
            elif each.kind == b"Z":
                return

    def _authenticate(self, exchange: Scram, body: bytes) -> None:
        (step,) = struct.unpack("!i", body[:4])
        if step == SASL:
            first = exchange.first().encode()
            size = struct.pack("!i", len(first))
            self.send(message(b"p", text("SCRAM-SHA-256") + size + first))
        elif step == SASL_CONTINUE:
            self.send(message(b"p", exchange.final(body[4:].decode()).encode()))
        elif step == SASL_FINAL:
            exchange.verify(body[4:].decode())
        elif step != AUTHENTICATION_OK:
            raise ValueError(f"the server asks for the password in another way ({step})")


class Scram:
    """One exchange of SCRAM-SHA-256 as the client sees it."""

    def __init__(self, password: str) -> None:
        """Begin with a nonce of its own."""
        self.password, self._nonce = password, secrets.token_hex(12)
        self._signature = b""

    def first(self) -> str:
        """The client's first message."""
        return f"n,,n=,r={self._nonce}"

    def final(self, offer: str, header: str = "n,,") -> str:
        """The client's last message, in answer to the server's first one."""
        given = dict(part.split("=", 1) for part in offer.split(","))
        if not given["r"].startswith(self._nonce):
            raise ValueError("the server has not kept the nonce")
        salt, rounds = base64.b64decode(given["s"]), int(given["i"])
        salted = hashlib.pbkdf2_hmac("sha256", self.password.encode(), salt, rounds)
        bare = f"c={base64.b64encode(header.encode()).decode()},r={given['r']}"
        signed = f"n=,r={self._nonce},{offer},{bare}".encode()
        key = hmac.digest(salted, b"Client Key", "sha256")
        proof = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        mixed = bytes(a ^ b for a, b in zip(key, proof, strict=True))
        server = hmac.digest(salted, b"Server Key", "sha256")
        self._signature = hmac.digest(server, signed, "sha256")
        return f"{bare},p={base64.b64encode(mixed).decode()}"

    def verify(self, said: str) -> None:
        """The server must know the password's verifier too."""
        if base64.b64decode(said.removeprefix("v=")) != self._signature:
            raise ValueError("the server's signature is wrong")
