"""Names and constants as DuckDB reads them.

No text of the client is copied: names and texts are quoted, and numbers are written from their
values.
"""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from typing import assert_never

from dpsql.policy.types import Kind, Scalar
from dpsql.sql.parameters import builtin


def quote_name(name: str) -> str:
    """An identifier, always quoted.

    >>> quote_name('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(value: Scalar | None, kind: Kind) -> str:
    """A constant. A fraction becomes the nearest double, written so that it reads back the same.

    It is written from the value alone: no method of a caller's own class is called.
    """
    match value := builtin(value):
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"{value}" if kind is not Kind.DOUBLE else double(Fraction(value))
        case Fraction():
            return double(value)
        case str():
            return text(value)
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            midnight = kind is Kind.TIMESTAMP
            return f"TIMESTAMP '{value} 00:00:00'" if midnight else f"DATE '{value}'"
        case _:
            assert_never(value)


def text(value: str) -> str:
    r"""A text constant. A NUL, which would end the statement, is written as a function call.

    >>> text("it's"), text("a\0b")
    ("'it''s'", "('a' || chr(0) || 'b')")
    """
    parts = ["'" + part.replace("'", "''") + "'" for part in value.split("\0")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"


def double(value: Fraction) -> str:
    """A double constant; the exponent keeps the engine from reading it as a decimal.

    >>> double(Fraction(1, 10)), double(Fraction(-500))
    ('0.1e0', '-500.0e0')
    """
    try:
        text = repr(float(value))
    except OverflowError:
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS DOUBLE)"
    return text if "e" in text else f"{text}e0"
