"""Values as PostgreSQL writes them, in text and in binary, and one form for all faces.

``decode_text`` and ``decode_binary`` follow PostgreSQL's documentation of its types. ``form``
makes values of different faces comparable: two cells agree if their forms are the same text.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

TYPES = {
    16: "boolean", 20: "bigint", 21: "smallint", 23: "integer", 25: "text", 700: "real",
    701: "double", 1082: "date", 1114: "timestamp", 1184: "timestamptz", 1700: "decimal",
    2950: "uuid",
}  # fmt: skip
"""What dpsql calls PostgreSQL's types in a policy."""
LISTS = {
    1000: 16, 1016: 20, 1005: 21, 1007: 23, 1009: 25, 1021: 700, 1022: 701, 1182: 1082,
    1115: 1114, 1185: 1184, 1231: 1700, 2951: 2950,
}  # fmt: skip
"""Types of lists, and of their members."""
MODIFIER_HEADER = 4
EPOCH = dt.datetime(2000, 1, 1)  # noqa: DTZ001 (the type has no zone)
NUMERIC_SPECIAL = {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}
NUMERIC_NEGATIVE = 0x4000
LONGEST_NUMERIC = 100
TRUTH = {"t": True, "f": False}
_MEMBER = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)')


def type_name(oid: int, modifier: int) -> str:
    """The name of a type; one that is not known keeps its number."""
    if oid in LISTS:
        return f"{type_name(LISTS[oid], modifier)}[]"
    name = TYPES.get(oid, f"oid {oid}")
    if name == "decimal" and modifier >= MODIFIER_HEADER:
        precision, scale = divmod(modifier - MODIFIER_HEADER, 1 << 16)
        return f"decimal({precision}, {scale})"
    return name


def decode_text(oid: int, body: bytes) -> Any:
    """A value of the text format."""
    words = body.decode()
    if oid in LISTS:
        return [None if part is None else decode_text(LISTS[oid], part) for part in _members(words)]
    reader = _TEXT.get(oid)
    return words if reader is None else reader(words)


def decode_binary(oid: int, body: bytes) -> Any:
    """A value of the binary format."""
    if oid in LISTS:
        return _binary_list(body)
    reader = _BINARY.get(oid)
    return body.hex() if reader is None else reader(body)


def form(value: Any, kind: str) -> str:
    """One text for a value of a type, whichever face gave it: equal bytes, equal text."""
    if value is None:
        return "NULL"
    if kind.endswith("[]"):
        return "[" + ", ".join(form(member, kind.removesuffix("[]")) for member in value) + "]"
    writer = _FORMS.get(kind.partition("(")[0])
    return str(value) if writer is None else writer(value, kind)


def _number(value: Any, kind: str) -> str:
    """A double by its bits, so that -0.0 is not 0.0; a real as the double it becomes."""
    number = float(value)
    if number != number:
        return "NaN"
    if kind == "real":
        (number,) = struct.unpack("!f", struct.pack("!f", number))
    return number.hex()


def _decimal(value: Any, kind: str) -> str:
    """A decimal with the places of its type; JSON and drivers leave zeros at the end out."""
    scale = int(kind.partition(",")[2].strip(" )") or 0)
    return format(Decimal(str(value)), f".{scale}f")


def _day(value: Any, kind: str) -> str:
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _moment(value: Any, kind: str) -> str:
    """A moment to the microsecond; one with a zone as that of UTC."""
    moment = value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(value)
    if kind == "timestamptz" and moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC)
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds")


_FORMS: dict[str, Callable[[Any, str], str]] = {
    "double": _number, "real": _number, "decimal": _decimal, "date": _day, "timestamp": _moment,
    "timestamptz": _moment, "boolean": lambda value, _: str(bool(value)).upper(),
    "bigint": lambda value, _: str(int(value)), "integer": lambda value, _: str(int(value)),
    "smallint": lambda value, _: str(int(value)), "uuid": lambda value, _: str(value),
}  # fmt: skip


def _binary_list(body: bytes) -> list[Any]:
    dimensions, _, oid = struct.unpack("!iiI", body[:12])
    if dimensions == 0:
        return []
    (count,), place, found = struct.unpack("!i", body[12:16]), 20, []
    for _ in range(count):
        (length,) = struct.unpack("!i", body[place : place + 4])
        place += 4
        found.append(None if length < 0 else decode_binary(oid, body[place : place + length]))
        place += max(length, 0)
    return found


def _members(words: str) -> list[bytes | None]:
    """The members of a list of one dimension, without their quotes."""
    found: list[bytes | None] = []
    for match in _MEMBER.finditer(words[1:-1]):
        quoted, bare = match.groups()
        if quoted is not None:
            found.append(re.sub(r"\\(.)", r"\1", quoted).encode())
        else:
            found.append(None if bare == "NULL" else bare.encode())
    return found


def _numeric(body: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack("!hhHh", body[:8])
    if sign in NUMERIC_SPECIAL:
        return Decimal(NUMERIC_SPECIAL[sign])
    digits = struct.unpack(f"!{count}h", body[8:])
    with localcontext(prec=LONGEST_NUMERIC):
        total = sum((Decimal(d).scaleb(4 * (weight - i)) for i, d in enumerate(digits)), Decimal(0))
        return (-total if sign == NUMERIC_NEGATIVE else total).quantize(Decimal(1).scaleb(-scale))


def _binary_moment(body: bytes) -> dt.datetime:
    return EPOCH + dt.timedelta(microseconds=struct.unpack("!q", body)[0])


_TEXT: dict[int, Callable[[str], Any]] = {
    16: TRUTH.__getitem__, 20: int, 21: int, 23: int, 700: float, 701: float,
    1082: dt.date.fromisoformat, 1114: dt.datetime.fromisoformat,
    1184: dt.datetime.fromisoformat, 1700: Decimal,
}  # fmt: skip
_BINARY: dict[int, Callable[[bytes], Any]] = {
    16: lambda b: b == b"\1", 20: lambda b: struct.unpack("!q", b)[0],
    21: lambda b: struct.unpack("!h", b)[0], 23: lambda b: struct.unpack("!i", b)[0],
    25: bytes.decode, 19: bytes.decode, 1043: bytes.decode,
    700: lambda b: struct.unpack("!f", b)[0], 701: lambda b: struct.unpack("!d", b)[0],
    1082: lambda b: EPOCH.date() + dt.timedelta(days=struct.unpack("!i", b)[0]),
    1114: _binary_moment, 1184: lambda b: _binary_moment(b).replace(tzinfo=dt.UTC),
    1700: _numeric, 2950: lambda b: str(uuid.UUID(bytes=b)),
}  # fmt: skip
