"""The tables of a source as the engine describes them, and its types in terms of a policy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dpsql.policy.model import ForeignKey
from dpsql.policy.scalars import kind_of
from dpsql.policy.types import INSTANT, Kind, digits_of, type_name

_PLAIN = {
    "BOOLEAN": "boolean", "TINYINT": "smallint", "SMALLINT": "smallint", "INTEGER": "integer",
    "BIGINT": "bigint", "HUGEINT": "bigint", "UTINYINT": "smallint", "USMALLINT": "integer",
    "UINTEGER": "bigint", "UBIGINT": "bigint", "UHUGEINT": "bigint", "FLOAT": "real",
    "DOUBLE": "double", "VARCHAR": "text", "UUID": "uuid", "DATE": "date",
    "TIMESTAMP": "timestamp", "TIMESTAMP_S": "timestamp", "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp", "TIMESTAMP WITH TIME ZONE": "timestamptz",
}  # fmt: skip
_APART = frozenset({
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER",
    "VARCHAR", "UUID", "DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP WITH TIME ZONE",
})  # fmt: skip
_READ_AS = {
    Kind.BOOLEAN: "BOOLEAN", Kind.INTEGER: "BIGINT", Kind.DOUBLE: "DOUBLE", Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE", Kind.TIMESTAMP: "TIMESTAMP",
}  # fmt: skip
"""The engine's type that statements read values of a kind as."""
_WIDER = {
    Kind.INTEGER: ("HUGEINT", "UBIGINT", "UHUGEINT"), Kind.TIMESTAMP: ("TIMESTAMP_S", "TIMESTAMP_MS"),
}  # fmt: skip
"""Engine types with values outside the type that they are read as."""
_DIGITS = 18
"""Whole decimals with at most this many digits fit into a BIGINT."""
_DECIMAL = re.compile(r"DECIMAL\( *([0-9]+) *, *([0-9]+) *\)")
_NESTED = frozenset({"STRUCT", "MAP", "UNION", "LIST", "VARIANT"})
_WHOLE = ("smallint", "integer", "bigint")
_ENUM = re.compile(r"ENUM\(.*\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table as the engine's catalog describes it; nothing was read from rows.

    ``columns`` maps names to the engine's types, in the order of the table. ``unique`` has the
    column sets of its PRIMARY KEY and UNIQUE constraints. ``unsteady`` says why its rows depend on
    more than the source itself; it is empty if they do not. ``computed`` says that it is a view that
    makes a row from several rows, so that two readings may differ in the last digits of values.
    """

    columns: Mapping[str, str]
    not_null: frozenset[str] = frozenset()
    unique: tuple[frozenset[str], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    unsteady: str = ""
    computed: bool = False


@dataclass(frozen=True, slots=True)
class SourceDescription:
    """The tables of a source, by name."""

    tables: Mapping[str, TableDescription]


def policy_type(engine_type: str) -> str | None:
    """The policy's name for a type of the engine; None if dpsql does not read the type.

    >>> policy_type("DECIMAL(18,2)"), policy_type("UINTEGER"), policy_type("BLOB")
    ('decimal(18, 2)', 'bigint', None)
    """
    name = engine_type.strip().upper()
    if found := _DECIMAL.fullmatch(name):
        return f"decimal({found[1]}, {found[2]})"
    if _ENUM.fullmatch(name):
        return "text"
    return _PLAIN.get(name)


def why_unread(engine_type: str) -> str:
    """Why dpsql does not read columns of a type of the engine, and what to write instead.

    >>> why_unread("INTERVAL").partition(";")[0]
    'equal intervals are not always the same bytes (1 month and 30 days), so none can name a group'
    >>> why_unread("INTEGER[]").partition(";")[0]
    'equal lists and records are not always the same bytes, so none can name a group'
    """
    name = engine_type.strip().upper()
    if name == "INTERVAL":
        why = (
            "equal intervals are not always the same bytes (1 month and 30 days), "
            "so none can name a group; let a view of the source give seconds: epoch(..)"
        )
    elif name.endswith("]") or name.partition("(")[0] in _NESTED:
        why = (
            "equal lists and records are not always the same bytes, so none can name a group; "
            "let a view of the source give each part a column of its own, or the length: len(..)"
        )
    elif name.startswith("TIME"):
        why = (
            "it has no times without a date; let a view of the source give the seconds since "
            "midnight: epoch(..)"
        )
    else:
        why = "no policy type is like it; let a view of the source cast it: CAST(.. AS VARCHAR)"
    return why


def declared_as(declared: str, engine_type: str) -> str:
    """The declared type of a column, or a wider one if the engine's type has more values.

    Under the narrower type, an answer could be a value that the type does not have. A plain
    ``decimal`` takes the digits of the source.

    >>> declared_as("integer", "BIGINT"), declared_as("decimal", "DECIMAL(12,2)")
    ('bigint', 'decimal(12, 2)')
    >>> declared_as("integer", "SMALLINT"), declared_as("decimal(9, 2)", "DECIMAL(12,2)")
    ('integer', 'decimal(12, 2)')
    """
    held = policy_type(engine_type) or ""
    if declared == "decimal" and digits_of(held):
        return held
    if not type_name(declared) or declared in (held, INSTANT):
        return declared
    if declared in _WHOLE and held in _WHOLE:
        return _WHOLE[max(_WHOLE.index(declared), _WHOLE.index(held))]
    one, other = digits_of(declared), digits_of(held)
    if one and other and one[1] >= other[1] and one[0] - one[1] >= other[0] - other[1]:
        return declared
    return held if one and other else kind_of(declared).value


def is_read_as_held(kind: Kind, engine_type: str) -> bool:
    """Whether statements read columns of an engine type as that type itself, without a cast.

    >>> is_read_as_held(Kind.INTEGER, "BIGINT"), is_read_as_held(Kind.INTEGER, "INTEGER")
    (True, False)
    """
    return _READ_AS.get(kind) == engine_type.strip().upper()


def may_not_fit(kind: Kind, engine_type: str) -> bool:
    """Whether a column may hold values that do not fit a kind, which are read as NULL.

    >>> may_not_fit(Kind.INTEGER, "HUGEINT"), may_not_fit(Kind.DOUBLE, "HUGEINT")
    (True, False)
    >>> may_not_fit(Kind.INTEGER, "DECIMAL(18,0)"), may_not_fit(Kind.INTEGER, "DECIMAL(19,0)")
    (False, True)
    """
    name = engine_type.strip().upper()
    if kind is Kind.INTEGER and (found := _DECIMAL.fullmatch(name)):
        return int(found[1]) > _DIGITS
    return name in _WIDER.get(kind, ())


def keeps_apart(engine_type: str) -> bool:
    """Whether different values of an engine type are read as different values, and none as NULL.

    >>> keeps_apart("UINTEGER"), keeps_apart("UBIGINT"), keeps_apart("TIMESTAMP_NS")
    (True, False, False)
    """
    name = engine_type.strip().upper()
    if found := _DECIMAL.fullmatch(name):
        return int(found[1]) <= _DIGITS and int(found[2]) == 0
    return name in _APART or _ENUM.fullmatch(name) is not None


def reads_alike(engine_type: str) -> bool:
    """Whether different values of a type that a unit's key may have are read as the same value.

    >>> reads_alike("TIMESTAMP_NS"), reads_alike("UBIGINT")
    (True, False)
    """
    return engine_type.strip().upper() == "TIMESTAMP_NS"


def whole_decimal(engine_type: str) -> bool:
    """Whether the type is a decimal without a fraction, which can also be read as integers.

    >>> whole_decimal("DECIMAL(18,0)")
    True
    """
    found = _DECIMAL.fullmatch(engine_type.strip().upper())
    return found is not None and int(found[2]) == 0
