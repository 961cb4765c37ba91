"""Column types as a policy names them, and the few kinds with which dpsql computes."""

from __future__ import annotations

import enum
import re
from datetime import date, datetime
from fractions import Fraction

Scalar = bool | int | Fraction | str | date | datetime
"""A public value. Numbers are exact: ints for integer columns, Fractions for the others."""


class Kind(enum.Enum):
    """The kind of the values of an expression, once the engine has read them."""

    BOOLEAN = "boolean"
    INTEGER = "bigint"
    DOUBLE = "double"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    INTERVAL = "interval"
    NULL = "null"
    BOOLEANS = "boolean[]"
    INTEGERS = "bigint[]"
    DOUBLES = "double[]"
    TEXTS = "text[]"
    DATES = "date[]"
    TIMESTAMPS = "timestamp[]"

    @property
    def numeric(self) -> bool:
        """Whether values can be summed and bounded."""
        return self in (Kind.INTEGER, Kind.DOUBLE)

    @property
    def element(self) -> Kind | None:
        """The kind of a list's elements; None if it is no list. Lists can only be shown."""
        inner = self.value.removesuffix("[]")
        return None if inner == self.value else Kind(inner)

    @property
    def several(self) -> Kind:
        """The kind of lists of this kind."""
        return Kind(f"{self.value}[]")

    @property
    def temporal(self) -> bool:
        """Whether values are points in time."""
        return self in (Kind.DATE, Kind.TIMESTAMP)


POLICY_TYPES: dict[str, Kind] = {
    "boolean": Kind.BOOLEAN,
    "smallint": Kind.INTEGER,
    "integer": Kind.INTEGER,
    "bigint": Kind.INTEGER,
    "real": Kind.DOUBLE,
    "double": Kind.DOUBLE,
    "decimal": Kind.DOUBLE,
    "text": Kind.TEXT,
    "uuid": Kind.TEXT,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
    "timestamptz": Kind.TIMESTAMP,
}
"""The types that a policy may write after ``type:`` (``decimal`` also as ``decimal(12, 2)``)."""

INSTANT = "timestamptz"
"""Instants are computed with as timestamps in UTC, and every session is in UTC."""
MOST_DIGITS = 15
"""Different decimals of at most this many digits are different doubles, and can be read back."""
WIDE = "decimal"
"""The name of decimals with more digits: answered as doubles, and rounded as decimals are."""
_NARROW = frozenset({"smallint", "integer", "real", "uuid", INSTANT})
_DECIMAL = re.compile(r"decimal\( *([0-9]+) *(?:, *([0-9]+) *)?\)")


def key_form(declared: str | None) -> str:
    """The type of a key that must not be compared with other types of its kind; else empty.

    A uuid is written in one form only. An instant is compared with a timestamp in the session's
    time zone.

    >>> key_form("uuid"), key_form("text")
    ('uuid', '')
    """
    return declared if declared in ("uuid", INSTANT) else ""


def digits_of(name: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type that names them; else None.

    >>> digits_of("decimal(12,2)"), digits_of("decimal")
    ((12, 2), None)
    """
    found = _DECIMAL.fullmatch(name)
    return None if found is None else (int(found[1]), int(found[2] or 0))


def total_type(name: str) -> str:
    """The type of a sum of values of a decimal type; empty for other types.

    >>> total_type("decimal(12, 2)"), total_type("integer")
    ('decimal(38, 2)', '')
    """
    digits = digits_of(name)
    return f"decimal(38, {digits[1]})" if digits else name if name == WIDE else ""


def type_name(declared: str) -> str:
    """The type name under which values are answered, if it says more than the kind; else empty.

    Decimals with more digits than a double can distinguish are named without digits.

    >>> type_name("decimal(12,2)"), type_name("decimal(18,2)"), type_name("integer"), type_name("text")
    ('decimal(12, 2)', 'decimal', 'integer', '')
    """
    digits = digits_of(declared)
    if digits is not None:
        return "decimal({}, {})".format(*digits) if digits[0] <= MOST_DIGITS else WIDE
    return declared if declared in _NARROW or declared == WIDE else ""
