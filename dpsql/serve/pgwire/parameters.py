"""Reads values of parameters as clients send them, in text and in binary format."""

from __future__ import annotations

import datetime as dt
import re
import struct
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from dpsql.serve.pgwire import oids
from dpsql.serve.pgwire.errors import BAD_BINARY, BAD_TEXT, PROTOCOL, WireError
from dpsql.serve.pgwire.messages import decode_text
from dpsql.serve.pgwire.values import EPOCH
from dpsql.sql.lists import elements

Value = Any
"""None, bool, int, float, Decimal, str, date, time, datetime (UTC), bytes, UUID or a list."""


def spread(formats: Sequence[int], count: int) -> tuple[int, ...]:
    """The format of each of ``count`` items. None given means text; one given is for all items."""
    if len(formats) == count:
        return tuple(formats)
    assert len(formats) <= 1, "check_formats comes first"
    return (formats[0] if formats else 0,) * count


def check_formats(formats: Sequence[int], count: int, *, results: bool) -> None:
    """Refuse a Bind with a wrong number of formats, in PostgreSQL's words."""
    if len(formats) > 1 and len(formats) != count:
        given = f"bind message has {len(formats)}"
        raise WireError(
            PROTOCOL,
            f"{given} result formats but query has {count} columns"
            if results
            else f"{given} parameter formats but {count} parameters",
        )


def value(raw: bytes | None, code: int, oid: int) -> Value:
    """Read the value of one parameter."""
    if raw is None:
        return None
    if code == 0:
        return _from_text(decode_text(raw), oid)
    try:
        return _from_binary(raw, oid)
    except (struct.error, ValueError, OverflowError, InvalidOperation):
        raise WireError(BAD_BINARY, "incorrect binary data format in bind parameter") from None


def _from_text(text: str, oid: int) -> Value:
    if oid in oids.ELEMENTS and oid not in (oids.INT2VECTOR, oids.OIDVECTOR):
        return [None if t is None else _from_text(t, oids.ELEMENTS[oid]) for t in items(text)]
    reader = _TEXTS.get(oid)
    if reader is None:
        return text
    try:
        return reader(text.strip())
    except (ValueError, KeyError, OverflowError, InvalidOperation):
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise WireError(BAD_TEXT, f'invalid input syntax for a parameter: "{shown}"') from None


def items(text: str) -> list[str | None]:
    """The elements of an array in text format.

    >>> items('{a,"b,c",NULL}')
    ['a', 'b,c', None]
    """
    found = elements(text)
    if found is None:
        raise WireError(BAD_TEXT, "malformed array literal")
    return found


_AFTER_DATE = re.compile(r"(?:[T ][\d:.]+)?\s*(?:Z|[+-]\d\d(?::?\d\d)?)?")
_ZONE = re.compile(r"(?<!\s)\s*+(Z|[+-]\d\d(?::?\d\d)?)$")


def _date(text: str) -> dt.date:
    if not _AFTER_DATE.fullmatch(text, 10):
        raise ValueError
    return dt.date.fromisoformat(text[:10])


def _moment(text: str) -> dt.datetime:
    """Read a timestamp. One with a zone is converted to UTC, the zone of every session."""
    zone = _ZONE.search(text) if ":" in text else None
    at = dt.datetime.fromisoformat(_ZONE.sub("", text) if zone else text)
    if zone is None or zone[1] == "Z":
        return at.replace(tzinfo=None)
    sign, hours, minutes = zone[1][0], zone[1][1:3], zone[1][-2:] if len(zone[1]) > 3 else "0"
    shift = dt.timedelta(hours=int(hours), minutes=int(minutes))
    return at + shift if sign == "-" else at - shift


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,19}", text):
        raise ValueError
    return int(text)


def _number(text: str) -> Decimal:
    """Read an exact number of bounded size.

    With an exponent, a few characters could stand for a number too large for exact arithmetic.
    """
    if len(text) > _MOST_DIGITS:
        raise ValueError
    found = Decimal(text)
    if found.is_finite() and abs(found.adjusted()) > _MOST_DIGITS:
        raise ValueError
    return found


_MOST_DIGITS = 1000


def _bytes(text: str) -> bytes:
    r"""Read bytes that are written in hexadecimal, or as text with escapes.

    >>> _bytes("\\x00ff"), _bytes("a\\\\b\\001")
    (b'\x00\xff', b'a\\b\x01')
    """
    if text.startswith("\\x"):
        return bytes.fromhex(text[2:])
    if not _ESCAPED.fullmatch(text):
        raise ValueError
    octal = _OCTAL.sub(lambda m: bytes([int(m[1], 8)]) if m[1] else b"\\", text.encode())
    return octal


_ESCAPED = re.compile(r"(?:[^\\]|\\\\|\\[0-3][0-7]{2})*", re.DOTALL)
_OCTAL = re.compile(rb"\\(?:\\|([0-3][0-7]{2}))")

_BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "on", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "off", "0"), False),
}
_TEXTS: dict[int, Callable[[str], Value]] = {
    oids.BOOL: lambda t: _BOOLEANS[t.lower()],
    oids.INT2: _integer,
    oids.INT4: _integer,
    oids.INT8: _integer,
    oids.OID: _integer,
    oids.FLOAT4: float,
    oids.FLOAT8: float,
    oids.NUMERIC: _number,
    oids.DATE: _date,
    oids.TIMESTAMP: _moment,
    oids.TIMESTAMPTZ: _moment,
    oids.TIME: dt.time.fromisoformat,
    oids.BYTEA: _bytes,
}


def _packed(code: str) -> Callable[[bytes], Value]:
    return lambda raw: struct.unpack("!" + code, raw)[0]


def _later(raw: bytes) -> dt.datetime:
    return EPOCH + dt.timedelta(microseconds=struct.unpack("!q", raw)[0])


def _clock(raw: bytes) -> dt.time:
    if not 0 <= struct.unpack("!q", raw)[0] < 86_400_000_000:
        raise ValueError  # 24:00:00 is a time in PostgreSQL, but not in Python
    return (EPOCH + dt.timedelta(microseconds=struct.unpack("!q", raw)[0])).time()


def _day(raw: bytes) -> dt.date:
    return dt.date.fromordinal(EPOCH.toordinal() + struct.unpack("!i", raw)[0])


def _numeric(raw: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack("!hhHH", raw[:8])
    groups = struct.unpack(f"!{count}h", raw[8:])
    if sign not in (0, 0x4000) or scale > 1000 or abs(weight) > 100 or count > 400:
        raise ValueError
    whole = 0
    for group in groups:
        if not 0 <= group < 10_000:
            raise ValueError
        whole = whole * 10_000 + group
    digits = tuple(map(int, str(whole)))  # decimal arithmetic would round
    return Decimal((int(bool(sign)), digits, 4 * (weight - count + 1)))


def _interval(raw: bytes) -> str:
    """Read an interval, as words that PostgreSQL and the engine read alike."""
    micro, days, months = struct.unpack("!qii", raw)
    return f"{months} months {days} days {micro} microseconds"


def _json(raw: bytes) -> str:
    if raw[:1] != b"\1":
        raise ValueError
    return decode_text(raw[1:])


def _array(raw: bytes) -> list[Value]:
    dimensions, _, element = struct.unpack("!iiI", raw[:12])
    if dimensions == 0:
        return []
    if dimensions != 1 or element in oids.ELEMENTS:
        raise ValueError
    (count,) = struct.unpack("!i", raw[12:16])
    found: list[Value] = []
    at = 20
    for _ in range(count):
        (length,) = struct.unpack("!i", raw[at : at + 4])
        at += 4
        found.append(None if length < 0 else _from_binary(raw[at : at + length], element))
        at += max(0, length)
    return found


_BINARIES: dict[int, Callable[[bytes], Value]] = {
    oids.BOOL: _packed("?"),
    oids.INT2: _packed("h"),
    oids.INT4: _packed("i"),
    oids.INT8: _packed("q"),
    oids.OID: _packed("I"),
    oids.FLOAT4: _packed("f"),
    oids.FLOAT8: _packed("d"),
    oids.DATE: _day,
    oids.TIME: _clock,
    oids.TIMESTAMP: _later,
    oids.TIMESTAMPTZ: _later,
    oids.NUMERIC: _numeric,
    oids.UUID: lambda raw: uuid.UUID(bytes=raw),
    oids.BYTEA: bytes,
    oids.INTERVAL: _interval,
    oids.JSONB: _json,
    **dict.fromkeys(oids.ELEMENTS, _array),
}


def _from_binary(raw: bytes, oid: int) -> Value:
    reader = _BINARIES.get(oid)
    return decode_text(raw) if reader is None else reader(raw)
