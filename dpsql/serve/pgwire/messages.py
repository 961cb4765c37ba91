"""The messages of clients: a class for each, and a table of readers by type byte."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from dpsql.serve.pgwire.errors import BAD_ENCODING, PROTOCOL, Fatal, WireError

PROTOCOL_3, NEWEST_MINOR = 3, 2
CANCEL, SSL, GSSENC = 80877102, 80877103, 80877104


@dataclass(frozen=True, slots=True)
class SimpleQuery:
    """A script in the simple protocol."""

    text: str


@dataclass(frozen=True, slots=True)
class Parse:
    """Prepare a statement. ``oids`` are the parameter types that the client knows."""

    name: str
    text: str
    oids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Make a portal of a prepared statement with values."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Describe:
    """Ask for the columns of a portal, or of a statement."""

    of_statement: bool
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a portal, for at most ``rows`` rows; 0 stands for all."""

    portal: str
    rows: int


@dataclass(frozen=True, slots=True)
class Close:
    """Close a portal, or a prepared statement."""

    of_statement: bool
    name: str


@dataclass(frozen=True, slots=True)
class Flush:
    """Send the messages that are waiting."""


@dataclass(frozen=True, slots=True)
class Sync:
    """The end of a series of extended messages."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """End the connection."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """Rows of a COPY that was refused; they are dropped."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A step of the log-in. The SCRAM exchange reads its body."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Startup:
    """The first message: the protocol version and the client's start-up parameters."""

    minor: int
    parameters: dict[str, str]


@dataclass(frozen=True, slots=True)
class Cancel:
    """Interrupt the statement of another connection."""

    process: int
    key: bytes


@dataclass(frozen=True, slots=True)
class Encrypt:
    """Ask for TLS, or for GSSAPI encryption."""

    gss: bool


ENCRYPTIONS = frozenset({Encrypt(gss=False), Encrypt(gss=True)})


Message = (
    SimpleQuery
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Flush
    | Sync
    | Terminate
    | Ignored
    | Secret
)


class _Reader:
    """Reads the fields of a message in order. A missing byte is a protocol violation."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def text(self) -> str:
        end = self._body.find(0, self._at)
        if end < 0:
            raise WireError(PROTOCOL, "invalid string in message")
        piece, self._at = self._body[self._at : end], end + 1
        return decode_text(piece)

    def raw(self, count: int) -> bytes:
        piece = self._body[self._at : self._at + count]
        if count < 0 or len(piece) < count:
            raise WireError(PROTOCOL, "insufficient data left in message")
        self._at += count
        return piece

    def integers(self, code: str, count: int) -> tuple[int, ...]:
        return struct.unpack(f"!{count}{code}", self.raw(count * struct.calcsize("!" + code)))

    def counted(self, code: str) -> tuple[int, ...]:
        return self.integers(code, self.integers("H", 1)[0])

    def values(self) -> tuple[bytes | None, ...]:
        (count,) = self.integers("H", 1)
        found: list[bytes | None] = []
        for _ in range(count):
            (length,) = self.integers("i", 1)
            found.append(None if length == -1 else self.raw(length))
        return tuple(found)

    def end(self) -> None:
        if self._at != len(self._body):
            raise WireError(PROTOCOL, "invalid message format")


def decode_text(raw: bytes) -> str:
    """Decode UTF-8. Raises the error that PostgreSQL gives if it is malformed."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise WireError(BAD_ENCODING, 'invalid byte sequence for encoding "UTF8"') from None
    if "\0" in text:
        raise WireError(BAD_ENCODING, 'invalid byte sequence for encoding "UTF8": 0x00')
    return text


def _query(r: _Reader) -> SimpleQuery:
    return SimpleQuery(r.text())


def _parse(r: _Reader) -> Parse:
    return Parse(r.text(), r.text(), r.counted("I"))


def _bind(r: _Reader) -> Bind:
    return Bind(r.text(), r.text(), _formats(r), r.values(), _formats(r))


def _formats(r: _Reader) -> tuple[int, ...]:
    formats = r.counted("h")
    if any(f not in (0, 1) for f in formats):
        raise WireError(PROTOCOL, "unsupported format code")
    return formats


def _describe(r: _Reader) -> Describe:
    return Describe(_is_statement(r), r.text())


def _close(r: _Reader) -> Close:
    return Close(_is_statement(r), r.text())


def _is_statement(r: _Reader) -> bool:
    kind = r.raw(1)
    if kind not in (b"S", b"P"):
        raise WireError(PROTOCOL, "invalid message subtype")
    return kind == b"S"


def _execute(r: _Reader) -> Execute:
    return Execute(r.text(), max(0, r.integers("i", 1)[0]))


_READERS: dict[int, Callable[[_Reader], Message]] = {
    ord("Q"): _query,
    ord("P"): _parse,
    ord("B"): _bind,
    ord("D"): _describe,
    ord("E"): _execute,
    ord("C"): _close,
    ord("H"): lambda _: Flush(),
    ord("S"): lambda _: Sync(),
    ord("X"): lambda _: Terminate(),
}
_UNREAD = {ord("d"), ord("c"), ord("f")}


def read_message(kind: int, body: bytes) -> Message:
    """Read the message of a type byte and its body."""
    if kind == ord("p"):
        return Secret(body)
    if kind in _UNREAD:
        return Ignored()
    reader = _READERS.get(kind)
    if reader is None:
        raise Fatal(PROTOCOL, f"invalid frontend message type {kind}")
    fields = _Reader(body)
    message = reader(fields)
    fields.end()
    return message


def read_startup(body: bytes) -> Startup | Cancel | Encrypt:
    """Read the first message of a connection."""
    (code,) = struct.unpack_from("!I", body)
    rest = body[4:]
    if code == CANCEL:
        if not 8 <= len(rest) <= 4 + 256:
            raise Fatal(PROTOCOL, "invalid cancel request")
        return Cancel(struct.unpack_from("!i", rest)[0], rest[4:])
    if code in (SSL, GSSENC):
        return Encrypt(gss=code == GSSENC)
    if code >> 16 != PROTOCOL_3:
        raise unsupported_protocol(code)
    return Startup(code & 0xFFFF, _pairs(rest))


def unsupported_protocol(code: int) -> Fatal:
    """The error for a version, or a request of the start-up phase, that is not supported."""
    said = f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}"
    return Fatal("0A000", f"{said}: server supports {PROTOCOL_3}.0 to {PROTOCOL_3}.{NEWEST_MINOR}")


def _pairs(rest: bytes) -> dict[str, str]:
    fields = rest.split(b"\0")
    if len(fields) % 2 or fields[-2:] != [b"", b""]:
        raise Fatal(PROTOCOL, "invalid startup packet layout: expected terminator as last byte")
    words = [decode_text(field) for field in fields[:-2]]
    return dict(zip(words[::2], words[1::2], strict=True))
