"""The names that an engine offers to clients, and the error for all other names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

OPERATORS = frozenset({
    "+", "-", "*", "/", "//", "%", "^", "&", "|", "~", "@", "<<", ">>", "||", "~~", "!~~", "~~*", "!~~*",
    "like_escape", "not_like_escape", "ilike_escape", "not_ilike_escape", "regexp_matches",
    "regexp_full_match", "timezone", "date_part", "to_years", "to_months", "to_weeks", "to_days",
    "to_hours", "to_minutes", "to_seconds", "to_milliseconds", "to_microseconds", "trunc", "count_star",
    "list_value", "row", "nullif", "unnest", "substring", "position", "trim", "ltrim", "rtrim", "overlay",
})  # fmt: skip
"""The functions that operators, and expressions with their own syntax, are in the engine's tree."""
PLAIN_TYPES = frozenset({
    "bigint", "blob", "bool", "boolean", "bpchar", "bytea", "char", "date", "decimal", "double", "float",
    "float4", "float8", "hugeint", "int", "int2", "int4", "int8", "integer", "interval", "list", "numeric",
    "oid", "real", "smallint", "string", "text", "time", "time with time zone", "timestamp", "timestamptz",
    "timestamp with time zone", "timetz", "tinyint", "ubigint", "uinteger", "usmallint", "utinyint",
    "uuid", "varchar",
})  # fmt: skip
"""Types of single values, and lists of them."""


JOINS = frozenset({"INNER", "LEFT", "RIGHT", "FULL"})
"""Kinds of joins that PostgreSQL has too."""


class NotListed(Exception):
    """Raised for a statement that the engine must not run.

    ``kind`` says what is not listed: a ``function``, ``relation``, ``type``, ``column`` or ``form``
    (of syntax). It is ``syntax`` if the engine's parser cannot read the statement. ``name`` is the
    name of what is not listed, from the statement.
    """

    def __init__(self, kind: str, name: str) -> None:
        """Hold both."""
        super().__init__(f"{kind} {name}")
        self.kind, self.name = kind, name


@dataclass(frozen=True, slots=True)
class Listing:
    """Listed names, in lower case: the engine's names are case-insensitive.

    ``relations`` are pairs of a schema (empty where none is written) and a name. ``hidden`` are
    names of the engine's own relations. No query may define one of them, because the name would
    then mean a listed relation in one place and the engine's own in another. ``columns`` are the
    columns that have a name of ``nodes.VALUES``, which the engine computes itself where no column
    has that name.
    """

    relations: frozenset[tuple[str, str]]
    functions: frozenset[str]
    rows: frozenset[str]
    """Functions that may stand in FROM."""
    windows: frozenset[str]
    types: frozenset[str]
    columns: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    joins: frozenset[str] = JOINS
    """Kinds of joins. PostgreSQL, and so clients, read SEMI and ANTI as aliases of a table."""

    def with_relations(self, names: Iterable[str]) -> Listing:
        """The listing with more relations."""
        more = frozenset(("", name.lower()) for name in names)
        return replace(self, relations=self.relations | more) if more else self
