"""A difference between dialects, and helpers to write differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.sql.spans import span_of


@dataclass(frozen=True, slots=True)
class Change:
    """A construct that differs in meaning from PostgreSQL, and its translation.

    ``about`` is a line of the documentation. ``of`` returns a node that has the same meaning in
    PostgreSQL. It may change the node in place and return it, or raise a refusal.
    """

    about: str
    of: Callable[[exp.Expr], exp.Expr]


Changes = Mapping[type[exp.Expr], Change]


@dataclass(frozen=True, slots=True)
class Dialect:
    """An input dialect: its name, its folding of unquoted names, and its differences.

    ``escapes`` says that a backslash in a string constant begins an escape sequence.
    """

    name: str
    title: str
    fold: Literal["lower", "upper", "keep"]
    escapes: bool
    changes: Changes


def refuse(node: exp.Expr, headline: str, why: str, instead: str) -> Refused:
    """The refusal of a construct that has no counterpart in PostgreSQL."""
    return Refused(Refusal("DP100", headline, why, instead, span_of(node)))


def keep_node(node: exp.Expr) -> exp.Expr:
    """The node unchanged."""
    return node


def without(*names: str) -> Callable[[exp.Expr], exp.Expr]:
    """A change that removes arguments that the parser adds and that have no meaning here."""

    def of(node: exp.Expr) -> exp.Expr:
        for name in names:
            node.set(name, None)
        return node

    return of


def number(value: int) -> exp.Expr:
    """A whole-number constant."""
    return exp.Literal.number(value)


def text(value: str) -> exp.Expr:
    """A text constant."""
    return exp.Literal.string(value)


def cast(node: exp.Expr, to: exp.DType) -> exp.Expr:
    """The node cast to another type."""
    return exp.Cast(this=node, to=exp.DataType(this=to))


def part(node: exp.Expr, name: str) -> exp.Expr:
    """``EXTRACT(name FROM node)``."""
    return exp.Extract(this=exp.Var(this=name.upper()), expression=node)


def word(node: object) -> str:
    """A unit or a part as a lower-case word."""
    if isinstance(node, exp.Var | exp.Literal | exp.Column):
        return str(node.name).lower()
    if isinstance(node, exp.WeekStart):
        return f"week({node.name.lower()})"
    return ""
