"""Types of columns: ordinary values, and the worst that each of them holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Family = Literal["number", "text", "day", "truth", "uuid", "unread"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of the engine, what a policy calls it, its values as SQL, and what may be declared."""

    sql: str
    policy: str
    family: Family
    plain: tuple[str, ...]
    extreme: tuple[str, ...]
    declared: tuple[str, ...] = ("",)


def _texts(*values: str) -> tuple[str, ...]:
    return tuple("'" + value.replace("'", "''") + "'" for value in values)


def _of(kind: str, *values: str) -> tuple[str, ...]:
    return tuple(f"CAST('{value}' AS {kind})" for value in values)


_WHOLE = tuple(str(n) for n in range(9))
_RANGES = ("range: [0, 8]", "range: [0, 8]", "range: [-3, 5]", "values: [0, 1, 2, 3]", "")
_REALS = tuple(f"{n}.5" for n in range(9))
_DOUBLES = (
    "-0.0", "0.0", "NaN", "-NaN", "inf", "-inf", "5e-324", "1e308", "-1e308", "9007199254740993",
    "0.1", "8", "8.000000000000002",
)  # fmt: skip
_DATES = _of("DATE", "2024-01-31", "2024-02-29", "2024-06-01", "2025-01-01", "2025-12-31")
_TIMES = (
    "2024-01-31 23:59:59.999999",
    "2024-06-01 00:00:00",
    "2025-03-30 02:30:00",
    "2025-12-31 12:00:00",
)
_FAR = ("0001-01-01", "9999-12-31", "5000-01-01 (BC)", "infinity", "-infinity")
_DAYS = ("range: [2024-01-01, 2025-12-31]", "range: [2024-01-01, 2024-03-01]", "")
_MOMENTS = ('range: ["2024-01-01 00:00:00", "2025-12-31 23:59:59"]', "")
_WORDS = ("web", "shop", "phone")
_LISTED = ("values: [web, shop, phone]", "values_from: places.code", "", "max_length: 5")
_STRANGE = (
    "", " ", "WEB", "web ", "wéb", "we\u0301b", "\u200bweb", "a'b", "%", "_", "1", "NaN", "-0", "null",
    "\U0001f600", "x" * 300, "ß", "SS",
)  # fmt: skip
_UUIDS = tuple(f"0000000{n}-0000-0000-0000-00000000000{n}" for n in range(4))

KINDS = (
    Kind("BIGINT", "bigint", "number", _WHOLE,
         ("9223372036854775807", "-9223372036854775808", "-1", "9", "9007199254740993"), _RANGES),
    Kind("INTEGER", "integer", "number", _WHOLE, ("2147483647", "-2147483648"), _RANGES),
    Kind("SMALLINT", "smallint", "number", _WHOLE, ("32767", "-32768"), _RANGES),
    Kind("UTINYINT", "integer", "number", _WHOLE, ("255", "0"), _RANGES),
    Kind("HUGEINT", "bigint", "number", _WHOLE,
         ("170141183460469231731687303715884105727", "-170141183460469231731687303715884105728"),
         _RANGES),
    Kind("DOUBLE", "double", "number", _of("DOUBLE", *_REALS), _of("DOUBLE", *_DOUBLES),
         ("range: [0, 8]", "range: [0, 8]", "range: [-1.5, 3.25]", "values: [0, 0.5, 1.5]", "")),
    Kind("FLOAT", "real", "number", _of("FLOAT", *_REALS),
         _of("FLOAT", "-0.0", "0.0", "NaN", "inf", "-inf", "1e-45", "3.4e38"), ("range: [0, 8]", "")),
    Kind("DECIMAL(9,2)", "decimal(9, 2)", "number", _REALS, ("9999999.99", "-9999999.99", "0.01"),
         ("range: [0, 8]", "range: [0.01, 0.02]", "")),
    Kind("DECIMAL(38,10)", "decimal(38, 10)", "number", _REALS,
         ("9999999999999999999999999999.9999999999", "-0.0000000001"), ("range: [0, 8]", "")),
    Kind("VARCHAR", "text", "text", _texts(*_WORDS), _texts(*_STRANGE), _LISTED),
    Kind("VARCHAR", "text", "text", _texts("x", "y", "z", "web"), _texts(*_STRANGE), _LISTED),
    Kind("ENUM('web', 'phone', 'shop')", "text", "text", _texts(*_WORDS), ("'web'",), _LISTED),
    Kind("UUID", "uuid", "uuid", _of("UUID", *_UUIDS),
         _of("UUID", "ffffffff-ffff-ffff-ffff-ffffffffffff")),
    Kind("DATE", "date", "day", _DATES, _of("DATE", *_FAR), _DAYS),
    Kind("TIMESTAMP", "timestamp", "day", _of("TIMESTAMP", *_TIMES), _of("TIMESTAMP", *_FAR), _MOMENTS),
    Kind("TIMESTAMP_NS", "timestamp", "day", _of("TIMESTAMP_NS", *_TIMES),
         _of("TIMESTAMP_NS", "1700-01-01", "2262-01-01"), _MOMENTS),
    Kind("TIMESTAMP_MS", "timestamp", "day", _of("TIMESTAMP_MS", "2024-01-31 23:59:59.999", *_TIMES[1:]),
         _of("TIMESTAMP_MS", "1700-01-01", "9999-12-31 23:59:59.999"), _MOMENTS),
    Kind("TIMESTAMP_S", "timestamp", "day", _of("TIMESTAMP_S", *_TIMES[1:]),
         _of("TIMESTAMP_S", "1700-01-01", "9999-12-31"), _MOMENTS),
    Kind("TIMESTAMPTZ", "timestamptz", "day", _of("TIMESTAMPTZ", *(f"{t}+00" for t in _TIMES)),
         _of("TIMESTAMPTZ", "0001-01-01 00:00:00+00", "9999-12-31 23:59:59+14", "infinity"), _MOMENTS),
    Kind("BOOLEAN", "boolean", "truth", ("TRUE", "FALSE"), ("TRUE",)),
)  # fmt: skip
UNREAD = (
    Kind("INTERVAL", "", "unread", ("INTERVAL 1 MONTH", "INTERVAL 30 DAY"), ("INTERVAL 720 HOUR",)),
    Kind("DOUBLE[]", "", "unread", ("[0.0]", "[-0.0]"), ("[]", "NULL")),
    Kind("STRUCT(a DOUBLE)", "", "unread", ("{'a': 0.0}",), ("{'a': -0.0}",)),
    Kind("BLOB", "", "unread", ("'a'::BLOB",), ("'\\x00'::BLOB",)),
    Kind("TIME", "", "unread", ("TIME '10:00:00'",), ("TIME '24:00:00'",)),
)
"""Columns that stand in tables and in no policy."""
BIG = 1 << 53
"""The first whole number whose successor is the same double."""


@dataclass(frozen=True, slots=True)
class Keys:
    """A type of keys in SQL and in a policy, with the key of each number as SQL."""

    sql: str
    policy: str
    value: Callable[[int], str]


def wide(number: int) -> str:
    """Whole numbers of which two are one double."""
    return str(BIG + number)


def moments(kind: str, digits: int) -> Callable[[int], str]:
    """Moments of which three stand as close together as the type can tell them apart."""

    def moment(number: int) -> str:
        hour, after = divmod(number, 3)
        parts = f".{after:0{digits}}" if digits else ""
        second = 0 if digits else after
        return f"CAST('2000-01-{1 + hour // 24:02} {hour % 24:02}:00:{second:02}{parts}' AS {kind})"

    return moment


KEYS = (
    Keys("BIGINT", "bigint", lambda n: str(n - 3)),
    Keys("VARCHAR", "text", lambda n: f"'u{n}'"),
    Keys("UUID", "uuid", lambda n: f"CAST('{n:08x}-0000-4000-8000-000000000000' AS UUID)"),
    Keys("DATE", "date", lambda n: f"(DATE '2000-01-01' + {n})"),
    Keys("INTEGER", "integer", lambda n: str(n - 3)),
    Keys("TIMESTAMP", "timestamp", lambda n: f"(TIMESTAMP '2000-01-01' + INTERVAL {n} HOUR)"),
)
"""Keys of units."""
MOMENTS = (
    Keys("TIMESTAMP_NS", "timestamp", moments("TIMESTAMP_NS", 9)),
    Keys("TIMESTAMP", "timestamp", moments("TIMESTAMP", 6)),
    Keys("TIMESTAMP_MS", "timestamp", moments("TIMESTAMP_MS", 3)),
    Keys("TIMESTAMP_S", "timestamp", moments("TIMESTAMP_S", 0)),
    Keys("TIMESTAMPTZ", "timestamptz", moments("TIMESTAMPTZ", 6)),
)
WHOLES = (
    Keys("BIGINT", "bigint", wide),
    Keys("UBIGINT", "bigint", wide),
    Keys("HUGEINT", "bigint", wide),
    Keys("DECIMAL(18, 0)", "bigint", wide),
)
CLOSE = (*(MOMENTS[0],) * 8, *MOMENTS, *WHOLES)
"""Keys that stand close together, those of the finest moments more often."""
