"""A client of the protocol that does as it likes: it sends any bytes, and keeps nothing that it reads."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import secrets
import socket
import ssl
import struct
from collections.abc import Iterator

from benchmarks.attacks.world import ATTACKER, DATABASE, Place

PIECE = 1 << 20
SYNC = b"S\0\0\0\4"


class ConnectionLost(Exception):
    """The server has ended the conversation, or refused it."""


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def query(sql: str) -> bytes:
    return message(b"Q", sql.encode() + b"\0")


def parse(name: str, sql: str, *oids: int) -> bytes:
    types = struct.pack(f"!h{len(oids)}I", len(oids), *oids)
    return message(b"P", name.encode() + b"\0" + sql.encode() + b"\0" + types)


def bind(portal: str, name: str, *values: bytes) -> bytes:
    body = portal.encode() + b"\0" + name.encode() + b"\0" + struct.pack("!hh", 0, len(values))
    for value in values:
        body += struct.pack("!i", len(value)) + value
    return message(b"B", body + struct.pack("!h", 0))


def describe(kind: str, name: str) -> bytes:
    return message(b"D", kind.encode() + name.encode() + b"\0")


def execute(portal: str, rows: int = 0) -> bytes:
    return message(b"E", portal.encode() + b"\0" + struct.pack("!i", rows))


def startup(user: str, **more: str) -> bytes:
    pairs = {"user": user, "database": DATABASE, **more}
    body = struct.pack("!i", 3 << 16)
    body += b"".join(k.encode() + b"\0" + v.encode() + b"\0" for k, v in pairs.items()) + b"\0"
    return struct.pack("!i", len(body) + 4) + body


TLS_REQUEST = struct.pack("!ii", 8, 80877103)


def cancel(process: int, key: bytes) -> bytes:
    return struct.pack("!iii", 12 + len(key), 80877102, process) + key


@functools.cache
def _salt_password(password: str, salt: str, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), iterations)


def _sign(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def connect(place: Place, *, http: bool = False, seconds: float = 30) -> socket.socket:
    """A connection to one of the faces, and nothing sent."""
    return socket.create_connection(
        (place.host, place.http if http else place.port), seconds, source(place)
    )


def source(place: Place) -> tuple[str, int] | None:
    """The address from which a client comes, as the library wants it."""
    return (place.source, 0) if place.source else None


@functools.cache
def unverified_context() -> ssl.SSLContext:
    """TLS without a look at the certificate, which signs itself."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Client:
    """One conversation."""

    def __init__(
        self, place: Place, user: str = ATTACKER, *, password: str = "", tls: bool = False,
        seconds: float = 30, **more: str,
    ) -> None:  # fmt: skip
        """Log in."""
        self.socket = connect(place, seconds=seconds)
        self.process, self.key = 0, b""
        try:
            if tls:
                self.socket.sendall(TLS_REQUEST)
                if self.socket.recv(1) != b"S":
                    raise ConnectionLost("no TLS")
                self.socket = unverified_context().wrap_socket(self.socket)
            self._file = self.socket.makefile("rb", PIECE)
            self._log_in(user, password or place.password, more)
        except BaseException:
            self.socket.close()
            raise

    def _log_in(self, user: str, password: str, more: dict[str, str]) -> None:
        self.send(startup(user, **more))
        nonce = secrets.token_hex(12)
        first = f"n=,r={nonce}"
        for kind, body in self.messages():
            if kind == b"E":
                raise ConnectionLost(state(body))
            if kind == b"K":
                self.process, self.key = int.from_bytes(body[:4], "big"), body[4:]
            if kind == b"Z":
                return
            method = int.from_bytes(body[:4], "big") if kind == b"R" else 0
            if method == 10:
                said = f"n,,{first}".encode()
                self.send(message(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(said)) + said))
            elif method == 11:
                self.send(message(b"p", _proof(first, body[4:].decode(), password)))

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def messages(self) -> Iterator[tuple[bytes, bytes]]:
        """What the server sends, without rows and other long messages."""
        while True:
            head = self._file.read(5)
            if len(head) < 5:
                raise ConnectionLost("the connection ended")
            kind, length = head[:1], int.from_bytes(head[1:], "big") - 4
            if kind in b"Dd" or length > PIECE:
                self._skip(length)
                yield kind, b""
            else:
                yield kind, self._file.read(length)

    def _skip(self, length: int) -> None:
        while length:
            read = self._file.read(min(length, PIECE))
            if not read:
                raise ConnectionLost("the connection ended")
            length -= len(read)

    def ready(self, kind: bytes = b"Z") -> str:
        """Read to the end of the answer; the code of its (last) error, or nothing."""
        found = ""
        for each, body in self.messages():
            if each == b"E":
                found = state(body)
            if each == kind:
                return found
        return found

    def ask(self, sql: str) -> str:
        """Run statements; the code of the error, or nothing."""
        self.send(query(sql))
        return self.ready()

    def close(self) -> None:
        """Without a word."""
        self._file.close()
        self.socket.close()


def _proof(first: str, offer: str, password: str) -> bytes:
    fields = dict(part.split("=", 1) for part in offer.split(","))
    last = f"c=biws,r={fields['r']}"
    salted = _salt_password(password, fields["s"], int(fields["i"]))
    key = _sign(salted, b"Client Key")
    signature = _sign(hashlib.sha256(key).digest(), f"{first},{offer},{last}".encode())
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True)))
    return f"{last},p={proof.decode()}".encode()


def state(body: bytes) -> str:
    """The code of an error."""
    for part in body.split(b"\0"):
        if part[:1] == b"C":
            return part[1:].decode()
    return "?"
