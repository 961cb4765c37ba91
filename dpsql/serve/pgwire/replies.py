"""The messages of the server, as bytes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dpsql.serve.pgwire.errors import WireError

_HEADER = struct.Struct("!ci")


class WireColumn(NamedTuple):
    """A column as clients see it: PostgreSQL's type number, width and modifier."""

    name: str
    oid: int
    size: int
    modifier: int = -1


def message(kind: bytes, body: bytes = b"") -> bytes:
    """A message: its type, its length, its body."""
    return _HEADER.pack(kind, len(body) + 4) + body


def text(value: str) -> bytes:
    """A string field. Zero bytes are removed, so that no string ends early."""
    return value.replace("\0", "").encode("utf-8", "replace") + b"\0"


AUTHENTICATED = message(b"R", struct.pack("!i", 0))
CLEARTEXT = message(b"R", struct.pack("!i", 3))
PARSED, BOUND, CLOSED = message(b"1"), message(b"2"), message(b"3")
NO_DATA, EMPTY, SUSPENDED = message(b"n"), message(b"I"), message(b"s")
COPY_DONE = message(b"c")


def sasl(mechanisms: Sequence[str]) -> bytes:
    """The SASL mechanisms that are offered."""
    names = b"".join(text(m) for m in mechanisms)
    return message(b"R", struct.pack("!i", 10) + names + b"\0")


def sasl_continue(data: bytes) -> bytes:
    """The server's challenge."""
    return message(b"R", struct.pack("!i", 11) + data)


def sasl_final(data: bytes) -> bytes:
    """The server's proof."""
    return message(b"R", struct.pack("!i", 12) + data)


def negotiate(minor: int, unknown: Sequence[str]) -> bytes:
    """The newest minor protocol version that is supported, and the options that are not known."""
    names = b"".join(text(name) for name in unknown)
    return message(b"v", struct.pack("!ii", 3 << 16 | minor, len(unknown)) + names)


def parameter_status(name: str, value: str) -> bytes:
    """The value of a setting that clients follow."""
    return message(b"S", text(name) + text(value))


def key_data(process: int, key: bytes) -> bytes:
    """The process number and the key that a client needs to cancel statements."""
    return message(b"K", struct.pack("!i", process) + key)


def ready_for_query(status: bytes) -> bytes:
    """Ready for the next script: idle, in a transaction, or in a failed one."""
    return message(b"Z", status)


def complete(tag: str) -> bytes:
    """The end of a command."""
    return message(b"C", text(tag))


def parameters(oids: Sequence[int]) -> bytes:
    """The types of a statement's parameters."""
    return message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def row_description(columns: Sequence[WireColumn], formats: Sequence[int]) -> bytes:
    """Names and types of the rows that follow."""
    fields = b"".join(
        text(c.name) + struct.pack("!ihIhih", 0, 0, c.oid, c.size, c.modifier, f)
        for c, f in zip(columns, formats, strict=True)
    )
    return message(b"T", struct.pack("!H", len(columns)) + fields)


def copy_out(columns: int, code: int) -> bytes:
    """The beginning of a COPY TO STDOUT."""
    return message(b"H", struct.pack(f"!bH{columns}h", code, columns, *([code] * columns)))


def error(problem: WireError, severity: str = "ERROR") -> bytes:
    """An error with its fields."""
    position = "" if problem.position is None else str(problem.position)
    named = {"D": problem.detail, "H": problem.hint, "P": position}
    return message(b"E", _fields(severity, problem.sqlstate, problem.message, named))


def notice(words: str, *, severity: str = "NOTICE", sqlstate: str = "00000") -> bytes:
    """A notice or a warning."""
    return message(b"N", _fields(severity, sqlstate, words, {}))


def _fields(severity: str, sqlstate: str, words: str, named: Mapping[str, str]) -> bytes:
    fields = {"S": severity, "V": severity, "C": sqlstate, "M": words, **named}
    return b"".join(k.encode() + text(v) for k, v in fields.items() if v) + b"\0"
