"""Reads a text as a value of a type. YAML's implicit types play no part."""

from __future__ import annotations

import re
import sys
from datetime import UTC, date, datetime
from fractions import Fraction

from dpsql.exact import parse_exact
from dpsql.policy.types import INSTANT, POLICY_TYPES, Kind, Scalar

WHOLE = r"[+-]?(0|[1-9][0-9]{0,30})"
NUMBER = r"[+-]?((0|[1-9][0-9]{0,400})(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,3})?"
DECIMAL = r"decimal\( *([1-9]|[12][0-9]|3[0-8]) *(, *([0-9]|[12][0-9]|3[0-8]) *)?\)"
PERCENT = r"(100(\.0{1,9})?|[1-9][0-9]?(\.[0-9]{1,9})?|0\.[0-9]{0,8}[1-9][0-9]{0,8}) ?%"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?"
)
_OFFSET = re.compile(r"(Z|[+-][0-9]{2}:[0-9]{2})$")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BITS = {"smallint": 16, "integer": 32, "bigint": 64}
_LARGEST = Fraction(sys.float_info.max)
_MEANT = {
    "int": "integer", "int2": "smallint", "int4": "integer", "int8": "bigint", "long": "bigint",
    "tinyint": "smallint", "hugeint": "bigint", "float": "double", "float4": "real",
    "float8": "double", "numeric": "decimal", "number": "double", "varchar": "text",
    "string": "text", "char": "text", "str": "text", "enum": "text", "bool": "boolean",
    "datetime": "timestamp", "timestamp with time zone": "timestamptz",
}  # fmt: skip


class NotAValue(ValueError):
    """The text is not a value of the type; the message says what to write."""


def flag(text: str) -> bool:
    """``true`` or ``false``, as YAML 1.2 and JSON spell them."""
    if text not in ("true", "false"):
        raise NotAValue("write true or false")
    return text == "true"


def whole(text: str) -> int:
    """A whole number in plain decimal digits.

    >>> whole("-12")
    -12
    """
    if not re.fullmatch(WHOLE, text):
        raise NotAValue("write a whole number in plain digits, such as 12")
    return int(text)


def number(text: str) -> Fraction:
    """A decimal number, exactly.

    >>> number("1e-5")
    Fraction(1, 100000)
    """
    if not re.fullmatch(NUMBER, text):
        raise NotAValue("write a decimal number, such as 0.5 or 1e-5")
    return parse_exact(text)


def kind_of(declared: str) -> Kind:
    """The kind of a type as a policy names it.

    >>> kind_of("decimal(12, 2)")
    <Kind.DOUBLE: 'double'>
    """
    if declared in POLICY_TYPES:
        return POLICY_TYPES[declared]
    found = re.fullmatch(DECIMAL, declared)
    if found and int(found[3] or 0) <= int(found[1]):
        return Kind.DOUBLE
    meant = _MEANT.get(declared.lower().split("(")[0].strip(), declared.lower())
    if meant in POLICY_TYPES:
        raise NotAValue(f"write {meant}")
    raise NotAValue(f"the types are: {', '.join(POLICY_TYPES)}, and decimal(12, 2)")


def scalar(text: str, declared: str) -> Scalar:
    """``text`` as a value of the declared type.

    >>> scalar("no", "text"), scalar("2024-02-29", "date")
    ('no', datetime.date(2024, 2, 29))
    """
    match kind_of(declared):
        case Kind.BOOLEAN:
            return flag(text)
        case Kind.INTEGER:
            return _integer(text, declared)
        case Kind.DOUBLE:
            return _double(text)
        case Kind.DATE:
            return _date(text)
        case Kind.TIMESTAMP:
            return _instant(text) if declared == INSTANT else _timestamp(text)
        case _:
            return _uuid(text) if declared == "uuid" else text


def _integer(text: str, declared: str) -> int:
    value = whole(text)
    top = 1 << _BITS[declared] - 1
    if not -top <= value < top:
        raise NotAValue(f"a {declared} lies between {-top} and {top - 1}")
    return value


def _double(text: str) -> Fraction:
    value = number(text)
    if abs(value) > _LARGEST:
        raise NotAValue("a double lies between -1.7976931348623157e308 and 1.7976931348623157e308")
    return value


def _uuid(text: str) -> str:
    if _UUID.fullmatch(text.lower()):
        return text.lower()
    raise NotAValue("write a uuid as 123e4567-e89b-12d3-a456-426614174000")


def _date(text: str) -> date:
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise NotAValue("write a date as 2024-12-31")


def _timestamp(text: str) -> datetime:
    try:
        if _TIMESTAMP.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise NotAValue("write a timestamp as 2024-12-31 23:59:59, without a zone")


def _instant(text: str) -> datetime:
    """An instant, converted to UTC from its offset; a text without an offset is in UTC."""
    found = _OFFSET.search(text)
    if found is None:
        return _timestamp(text)
    try:
        at = datetime.fromisoformat(_timestamp(text[: found.start()]).isoformat() + found[0])
        return at.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise NotAValue("write an instant as 2024-12-31 23:59:59+01:00") from None
