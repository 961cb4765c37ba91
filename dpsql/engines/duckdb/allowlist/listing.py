"""What an engine has for clients, by name; and what is said of everything else."""

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
"""What operators, and expressions with words of their own, are in the engine's tree."""
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
    """A statement that the engine does not run.

    ``kind`` says what is not listed: ``function``, ``relation``, ``type``, ``column``, ``form`` (of
    syntax), or that the engine's parser cannot read it (``syntax``); ``name`` is its name, from the
    statement.
    """

    def __init__(self, kind: str, name: str) -> None:
        """Hold both."""
        super().__init__(f"{kind} {name}")
        self.kind, self.name = kind, name


@dataclass(frozen=True, slots=True)
class Listing:
    """Names in lower case: to the engine all spellings of a name are one.

    ``relations`` are pairs of a schema (empty where none is written) and a name. ``hidden`` are names
    of relations of the engine's own: no query may define one, for then a name would be listed in one
    place and the engine's in another. ``columns`` are columns that are called like one of
    ``nodes.VALUES``, which the engine computes where no column has that name.
    """

    relations: frozenset[tuple[str, str]]
    functions: frozenset[str]
    rows: frozenset[str]
    """Functions that stand in FROM."""
    windows: frozenset[str]
    types: frozenset[str]
    columns: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    joins: frozenset[str] = JOINS
    """To PostgreSQL, and so to clients, SEMI and ANTI are names of the table before them."""

    def with_relations(self, names: Iterable[str]) -> Listing:
        """The same with more relations."""
        more = frozenset(("", name.lower()) for name in names)
        return replace(self, relations=self.relations | more) if more else self
