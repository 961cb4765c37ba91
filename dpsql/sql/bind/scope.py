"""Names: which column does an identifier mean here?"""

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
"""Every listed table is in this schema, by either of its names."""


def fold_name(identifier: exp.Identifier) -> str:
    """PostgreSQL's rule: an unquoted name is lower case."""
    name = str(identifier.this)
    return name if identifier.args.get("quoted") else name.lower()


def spell_name(name: str) -> str:
    """The name as it is written in SQL: quoted where it must be."""
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
"""Words that name nothing unless quoted."""


def same(name: str, other: str) -> bool:
    """Names of the policy also match in another case, quoted or not, as BI tools write them."""
    return name.casefold() == other.casefold()


@dataclass(frozen=True, slots=True)
class Named:
    """One item of a FROM clause: its alias and what it offers."""

    alias: str
    fields: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """The names in reach: FROM items, output aliases as a fallback, and the query around."""

    sources: tuple[Named, ...] = ()
    aliases: Mapping[str, Expression] = field(default_factory=dict)
    ctes: Mapping[str, tuple[exp.Expr, Scope, tuple[str, ...]]] = field(default_factory=dict)
    merged: frozenset[str] = frozenset()
    """Names that USING made one: the first source's column stands for all."""
    outer: Scope | None = None
    """The scope of the query around a subquery: asked when nothing here answers to a name."""

    @property
    def fields(self) -> tuple[Column, ...]:
        """Every column in reach, in FROM order."""
        return tuple(f for source in self.sources for f in source.fields)

    def with_fields(self, fields: Iterable[Column]) -> Scope:
        """The same names with refreshed columns (narrowed, or made nullable)."""
        new = {f.number: f for f in fields}
        sources = tuple(
            replace(s, fields=tuple(_refresh(f, new) for f in s.fields)) for s in self.sources
        )
        return replace(self, sources=sources)

    def star(self, node: exp.Expr, table: str | None = None) -> tuple[Column, ...]:
        """What ``*`` or ``t.*`` stands for."""
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
        """The column that a name means, or a refusal that names near ones."""
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
        """Whether the name is one of these, or of a query around."""
        try:
            self.resolve(node)
        except Refused:
            return False
        return True

    def _around(self, node: exp.Column) -> Expression | None:
        """What the name means in the queries around: each is asked once, however many there are."""
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
