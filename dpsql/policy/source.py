"""What an engine says about its tables, and what its types are to a policy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dpsql.policy.model import ForeignKey

_PLAIN = {
    "BOOLEAN": "boolean", "TINYINT": "smallint", "SMALLINT": "smallint", "INTEGER": "integer",
    "BIGINT": "bigint", "HUGEINT": "bigint", "UTINYINT": "smallint", "USMALLINT": "integer",
    "UINTEGER": "bigint", "UBIGINT": "bigint", "UHUGEINT": "bigint", "FLOAT": "real",
    "DOUBLE": "double", "VARCHAR": "text", "UUID": "uuid", "DATE": "date",
    "TIMESTAMP": "timestamp", "TIMESTAMP_S": "timestamp", "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp",
}  # fmt: skip
_APART = frozenset({
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER",
    "VARCHAR", "UUID", "DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS",
})  # fmt: skip
_DIGITS = 18
"""Whole decimals of so many digits fit into a BIGINT."""
_DECIMAL = re.compile(r"DECIMAL\( *([0-9]+) *, *([0-9]+) *\)")
_ENUM = re.compile(r"ENUM\(.*\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table as the engine's own catalog has it; nothing was read from rows.

    ``columns`` maps names to the engine's types, in the order of the table. ``unique`` are the
    column sets of its PRIMARY KEY and UNIQUE constraints. ``unsteady`` says why its rows follow from
    more than the source itself, and nothing where they do not.
    """

    columns: Mapping[str, str]
    not_null: frozenset[str] = frozenset()
    unique: tuple[frozenset[str], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    unsteady: str = ""


@dataclass(frozen=True, slots=True)
class SourceDescription:
    """The tables of a source, by name."""

    tables: Mapping[str, TableDescription]


def policy_type(engine_type: str) -> str | None:
    """The policy's word for a type of the engine; None if dpsql does not read it.

    >>> policy_type("DECIMAL(18,2)"), policy_type("UINTEGER"), policy_type("BLOB")
    ('decimal(18, 2)', 'bigint', None)
    """
    name = engine_type.strip().upper()
    if found := _DECIMAL.fullmatch(name):
        return f"decimal({found[1]}, {found[2]})"
    if _ENUM.fullmatch(name):
        return "text"
    return _PLAIN.get(name)


def keeps_apart(engine_type: str) -> bool:
    """Whether each value of an engine type is read as a value of its own, and none as NULL.

    >>> keeps_apart("UINTEGER"), keeps_apart("UBIGINT"), keeps_apart("TIMESTAMP_NS")
    (True, False, False)
    """
    name = engine_type.strip().upper()
    if found := _DECIMAL.fullmatch(name):
        return int(found[1]) <= _DIGITS and int(found[2]) == 0
    return name in _APART or _ENUM.fullmatch(name) is not None


def whole_decimal(engine_type: str) -> bool:
    """Whether it is a decimal type without a fraction, which also holds integers.

    >>> whole_decimal("DECIMAL(18,0)")
    True
    """
    found = _DECIMAL.fullmatch(engine_type.strip().upper())
    return found is not None and int(found[2]) == 0
