"""Encodes single values as PostgreSQL does, in text and in binary format."""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dpsql.serve.pgwire import oids

Encoder = Callable[[Any], bytes]

EPOCH = dt.datetime(2000, 1, 1)  # noqa: DTZ001 (PostgreSQL's epoch has no zone)
_MICROSECOND = dt.timedelta(microseconds=1)


def number_text(value: float) -> bytes:
    """The shortest text that reads back as the same number.

    >>> number_text(2.0), number_text(1e15), number_text(float("-inf"))
    (b'2', b'1e+15', b'-Infinity')
    """
    if 1e15 <= abs(value) < 1e16:  # where Python has no exponent yet
        return np.format_float_scientific(value, trim="-", exp_digits=2).encode()
    if math.isfinite(value):
        return repr(value).removesuffix(".0").encode()
    return b"NaN" if math.isnan(value) else b"Infinity" if value > 0 else b"-Infinity"


def _single_text(value: float) -> bytes:
    """The same for a number of 32 bits, which has fewer digits before an exponent.

    >>> _single_text(0.10000000149011612), _single_text(1234567.0)
    (b'0.1', b'1.234567e+06')
    """
    single = np.float32(value)
    if np.isfinite(single) and single and not 1e-4 <= abs(single) < 1e6:
        return np.format_float_scientific(single, trim="-", exp_digits=2).encode()
    return number_text(float(str(single)))


def timestamp_text(value: dt.datetime) -> bytes:
    """The timestamp in ISO form, with a blank before the time and no trailing zeros.

    >>> timestamp_text(dt.datetime(2024, 5, 1, 7, 0, 0, 250000))
    b'2024-05-01 07:00:00.25'
    """
    text = value.replace(tzinfo=None).isoformat(" ")
    return (text.rstrip("0") if "." in text else text).encode()


def _zoned_text(value: dt.datetime) -> bytes:
    return timestamp_text(_utc(value)) + b"+00"


def _utc(value: dt.datetime) -> dt.datetime:
    return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)


def _moment(value: dt.datetime) -> bytes:
    return struct.pack("!q", (_utc(value) - EPOCH) // _MICROSECOND)


def _day(value: dt.date) -> bytes:
    return struct.pack("!i", value.toordinal() - EPOCH.toordinal())


def _time(value: dt.time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return struct.pack("!q", seconds * 1_000_000 + value.microsecond)


class Span(NamedTuple):
    """An interval in PostgreSQL's parts, which do not convert and have signs of their own."""

    months: int
    days: int
    micro: int

    @classmethod
    def of(cls, value: dt.timedelta | pa.MonthDayNano) -> Span:
        """Read an interval as Arrow returns it."""
        if isinstance(value, dt.timedelta):
            sign, size = (-1, -value) if value < dt.timedelta() else (1, value)
            return cls(0, sign * size.days, sign * (size.seconds * 1_000_000 + size.microseconds))
        return cls(value.months, value.days, value.nanoseconds // 1_000)


def _interval(value: dt.timedelta | pa.MonthDayNano) -> bytes:
    months, days, micro = Span.of(value)
    return struct.pack("!qii", micro, days, months)


def _interval_text(value: dt.timedelta | pa.MonthDayNano) -> bytes:
    """The interval in PostgreSQL's own style.

    >>> _interval_text(pa.MonthDayNano([14, -2, 3_000_000_000])).decode()
    '1 year 2 mons -2 days +00:00:03'
    """
    months, days, micro = Span.of(value)
    years = int(months / 12)
    parts, before = list[str](), False
    for count, unit in ((years, "year"), (months - 12 * years, "mon"), (days, "day")):
        if count:
            plus = "+" if before and count > 0 else ""
            parts.append(f"{plus}{count} {unit}{'' if count == 1 else 's'}")
            before = count < 0
    if micro or not parts:
        minutes, rest = divmod(abs(micro), 60_000_000)
        sign = "-" if micro < 0 else "+" if before else ""
        clock = f"{sign}{minutes // 60:02}:{minutes % 60:02}:{rest // 1_000_000:02}"
        fraction = f".{rest % 1_000_000:06}".rstrip("0").rstrip(".")
        parts.append(clock + fraction)
    return " ".join(parts).encode()


def _exact(value: Decimal | int) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(value)


def numeric(value: Decimal | int) -> bytes:
    """A decimal in binary format: groups of four digits."""
    number = _exact(value)
    if not number.is_finite():
        return struct.pack("!hhHh", 0, 0, 0xC000, 0)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    pad = -scale % 4
    whole = int("".join(map(str, digits))) * 10 ** (max(0, exponent) + pad)
    groups: list[int] = []
    while whole:
        whole, group = divmod(whole, 10_000)
        groups.append(group)
    weight = len(groups) - (scale + pad) // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
    head = len(groups), weight if groups else 0, 0x4000 if sign and groups else 0, scale
    return struct.pack(f"!hhHh{len(groups)}h", *head, *reversed(groups))


def _decimal_text(value: Decimal | int) -> bytes:
    number = _exact(value)
    return format(number, "f").encode() if number.is_finite() else b"NaN"


def _array_text(element: Encoder) -> Encoder:
    def write(values: Sequence[object]) -> bytes:
        return b"{" + b",".join(_item(v, element) for v in values) + b"}"

    return write


def _item(value: object, element: Encoder) -> bytes:
    if value is None:
        return b"NULL"
    if isinstance(value, list):
        return b"{" + b",".join(_item(v, element) for v in value) + b"}"
    text = element(value)
    if text and text.upper() != b"NULL" and not any(c in b'{}",\\ \t\n\r\v\f' for c in text):
        return text
    return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _vector_text(values: Sequence[object]) -> bytes:
    return " ".join(map(str, values)).encode()


def _array(oid: int, element: Encoder, *, lower: int = 1) -> Encoder:
    def write(values: Sequence[object]) -> bytes:
        holes = any(v is None for v in values)
        head = struct.pack("!iiI", 1 if values else 0, int(holes), oid)
        size = struct.pack("!ii", len(values), lower) if values else b""
        return head + size + b"".join(field(v, element) for v in values)

    return write


def field(value: object, encoder: Encoder) -> bytes:
    """A value with its length; NULL has the length -1."""
    if value is None:
        return b"\xff\xff\xff\xff"
    raw = encoder(value)
    return struct.pack("!i", len(raw)) + raw


def _text(value: object) -> bytes:
    raw = value if isinstance(value, str) else str(value)
    return raw.encode("utf-8", "replace")


def _packed(code: str) -> Encoder:
    return struct.Struct("!" + code).pack


_AS_TEXT: dict[int, Encoder] = {
    oids.BOOL: lambda v: b"t" if v else b"f",
    oids.FLOAT4: _single_text,
    oids.FLOAT8: number_text,
    oids.TIMESTAMP: timestamp_text,
    oids.TIMESTAMPTZ: _zoned_text,
    oids.INTERVAL: _interval_text,
    oids.NUMERIC: _decimal_text,
    oids.BYTEA: lambda v: b"\\x" + v.hex().encode(),
    **{oid: lambda v: _text(v["name"]) for oid in oids.NUMBERED},
}
_AS_BINARY: dict[int, Encoder] = {
    oids.BOOL: lambda v: b"\1" if v else b"\0",
    oids.INT2: _packed("h"),
    oids.INT4: _packed("i"),
    oids.INT8: _packed("q"),
    oids.OID: _packed("I"),
    **{oid: lambda v: struct.pack("!I", v["oid"]) for oid in oids.NUMBERED},
    oids.JSONB: lambda v: b"\1" + _text(v),
    oids.FLOAT4: _packed("f"),
    oids.FLOAT8: _packed("d"),
    oids.DATE: _day,
    oids.TIME: _time,
    oids.TIMESTAMP: _moment,
    oids.TIMESTAMPTZ: _moment,
    oids.INTERVAL: _interval,
    oids.NUMERIC: numeric,
    oids.UUID: lambda v: uuid.UUID(str(v)).bytes,
    oids.BYTEA: bytes,
}


def _with_arrays(plain: Mapping[int, Encoder], *, binary: bool) -> dict[int, Encoder]:
    found = dict(plain)
    for array, element in oids.ELEMENTS.items():
        encoder = plain.get(element, _text)
        found[array] = _array(element, encoder) if binary else _array_text(encoder)
    for vector in (oids.INT2VECTOR, oids.OIDVECTOR):
        encoder = plain.get(oids.ELEMENTS[vector], _text)
        element = oids.ELEMENTS[vector]
        found[vector] = _array(element, encoder, lower=0) if binary else _vector_text
    return found


_ENCODERS = _with_arrays(_AS_TEXT, binary=False), _with_arrays(_AS_BINARY, binary=True)


def encoder(oid: int, code: int) -> Encoder:
    """The function that writes values of a type in text (0) or binary (1) format."""
    return _ENCODERS[code].get(oid, _text)
