"""Scopes of names: the column that an identifier means."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dpsql.diagnostics.edit import Edit
from dpsql.diagnostics.refusal import Refused
from dpsql.ir.expressions import Column, Expression
from dpsql.sql.bind.context import refuse
from dpsql.sql.spans import span_of

SCHEMAS = ("public", "main")
"""The names of the schema that every listed table is in."""


def fold_name(identifier: exp.Identifier) -> str:
    """The name of an identifier by PostgreSQL's rule: an unquoted name becomes lower case."""
    name = str(identifier.this)
    return name if identifier.args.get("quoted") else name.lower()


def spell_name(name: str) -> str:
    """The name as written in SQL, quoted if necessary."""
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


RESERVED = frozenset(
    [
        "all",
        "and",
        "any",
        "as",
        "asc",
        "between",
        "case",
        "cast",
        "cross",
        "desc",
        "distinct",
        "else",
        "end",
        "except",
        "exists",
        "false",
        "for",
        "from",
        "full",
        "group",
        "having",
        "in",
        "inner",
        "intersect",
        "is",
        "join",
        "lateral",
        "left",
        "like",
        "limit",
        "not",
        "null",
        "offset",
        "on",
        "or",
        "order",
        "outer",
        "right",
        "select",
        "table",
        "then",
        "to",
        "true",
        "union",
        "using",
        "values",
        "when",
        "where",
        "window",
        "with",
    ]
)
"""Words that are names only if they are quoted."""


def same(name: str, other: str) -> bool:
    """Whether two names match. Case is ignored, also for quoted names, as BI tools vary it."""
    return name.casefold() == other.casefold()


@dataclass(frozen=True, slots=True)
class Named:
    """One item of a FROM clause: its alias and its columns."""

    alias: str
    fields: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """The visible names: FROM items, then output aliases, then the names of the outer query."""

    sources: tuple[Named, ...] = ()
    aliases: Mapping[str, Expression] = field(default_factory=dict)
    row_aliases: Mapping[str, Expression] | None = None
    """The output aliases for single rows, if these are not ``aliases``."""
    ctes: Mapping[str, tuple[exp.Expr, Scope, tuple[str, ...]]] = field(default_factory=dict)
    merged: frozenset[str] = frozenset()
    """The columns that USING merged: such a name means the column of the first source."""
    outer: Scope | None = None
    """The scope of the query around a subquery, for names that are not found here."""

    @property
    def fields(self) -> tuple[Column, ...]:
        """Every column of the FROM items, in order."""
        return tuple(f for source in self.sources for f in source.fields)

    def with_fields(self, fields: Iterable[Column]) -> Scope:
        """The same names with updated columns (narrowed, or made nullable)."""
        new = {f.number: f for f in fields}
        sources = tuple(
            replace(s, fields=tuple(_refresh(f, new) for f in s.fields)) for s in self.sources
        )
        return replace(self, sources=sources)

    def star(self, node: exp.Expr, table: str | None = None) -> tuple[Column, ...]:
        """The columns of ``*`` or ``t.*``."""
        if table is None:
            seen: set[str] = set()
            found: list[Column] = []
            for f in self.fields:
                if f.name in self.merged and f.name in seen:
                    continue
                seen.add(f.name)
                found.append(f)
            return tuple(found)
        for source in self.sources:
            if same(source.alias, table):
                return source.fields
        raise _unknown_source(node, table, self)

    def resolve(self, node: exp.Column) -> Expression:
        """The column that a name means; a refusal suggests similar names."""
        identifier = node.this
        name = fold_name(identifier)
        table = node.args.get("table")
        schema = node.args.get("db")
        if table is not None:
            if schema is not None and fold_name(schema).lower() not in SCHEMAS:
                raise _unknown_source(node, f"{fold_name(schema)}.{fold_name(table)}", self)
            return self._qualified(node, fold_name(table), name)
        found = _matching(self.fields, name)
        numbers = {f.number for f in found}
        if len(numbers) > 1 and not any(same(name, m) for m in self.merged):
            raise _ambiguous(node, name, self)
        if found:
            return replace(found[0], span=span_of(node))
        for alias, value in self.aliases.items():
            if same(alias, name):
                return value
        around = self._around(node)
        if around is None:
            raise _unknown(node, name, self.fields)
        return around

    def knows(self, node: exp.Column) -> bool:
        """Whether the name resolves here or in an outer query."""
        try:
            self.resolve(node)
        except Refused:
            return False
        return True

    def _around(self, node: exp.Column) -> Expression | None:
        """The meaning of the name in the outer queries, or None. Each of them is asked once."""
        if self.outer is None:
            return None
        try:
            return self.outer.resolve(node)
        except Refused:
            return None

    def _qualified(self, node: exp.Column, table: str, name: str) -> Expression:
        sources = [s for s in self.sources if same(s.alias, table)]
        if not sources:
            around = self._around(node)
            if around is None:
                raise _unknown_source(node, table, self)
            return around
        found = _matching(sources[0].fields, name)
        if not found:
            raise _unknown(node, name, sources[0].fields)
        if len({f.number for f in found}) > 1:
            raise _ambiguous(node, name, self)
        return replace(found[0], span=span_of(node))


def _refresh(column: Column, new: Mapping[int, Column]) -> Column:
    fresh = new.get(column.number)
    return column if fresh is None else replace(column, shape=fresh.shape)


def _matching(fields: Iterable[Column], name: str) -> list[Column]:
    everything = list(fields)
    exact = [f for f in everything if f.name == name]
    return exact or [f for f in everything if same(f.name, name)]


def _unknown(node: exp.Column, name: str, fields: tuple[Column, ...]) -> Refused:
    near = difflib.get_close_matches(name, [f.name for f in fields], 3)
    known = ", ".join(near or [f.name for f in fields][:12])
    table = node.args.get("table")
    front = "" if table is None else f"{spell_name(fold_name(table))}."
    return refuse(
        "DP105",
        node,
        f'there is no column "{name}" here',
        "A column that the policy does not list does not exist for analysts.",
        f"Known here: {known}." if known else "",
        *(
            Edit("rename", sql=spell_name(c), note=f"{front}{c} instead of {front}{name}")
            for c in near
        ),
    )


def _unknown_source(node: exp.Expr, table: str, scope: Scope) -> Refused:
    aliases = [s.alias for s in scope.sources if s.alias]
    near = difflib.get_close_matches(table, aliases, 1) or aliases[: len(aliases) == 1]
    return refuse(
        "DP105",
        node,
        f'"{table}" is not a table or alias of this FROM clause',
        "Columns are taken from the tables that the query reads.",
        f"Known here: {', '.join(aliases)}.",
        *(
            Edit("replace", sql=f"{spell_name(alias)}.{spell_name(node.name)}")
            for alias in near
            if node.name
        ),
    )


def _ambiguous(node: exp.Expr, name: str, scope: Scope) -> Refused:
    owners = [
        s.alias for s in scope.sources if s.alias and any(same(f.name, name) for f in s.fields)
    ]
    return refuse(
        "DP106",
        node,
        f'"{name}" is a column of more than one table here',
        "The answer would depend on which one is meant.",
        f"Write the table in front: {' or '.join(f'{spell_name(a)}.{spell_name(name)}' for a in owners)}.",
        *(Edit("replace", sql=f"{spell_name(alias)}.{spell_name(name)}") for alias in owners),
    )
