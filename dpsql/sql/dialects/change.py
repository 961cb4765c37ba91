"""What a difference between dialects is, and the pieces that differences are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.sql.spans import span_of


@dataclass(frozen=True, slots=True)
class Change:
    """A construct that means something else than in PostgreSQL, and how it is said there.

    ``about`` is a line of the documentation. ``of`` gives the node that means the same there;
    it may be the node itself, changed in place, or a refusal.
    """

    about: str
    of: Callable[[exp.Expr], exp.Expr]


Changes = Mapping[type[exp.Expr], Change]


@dataclass(frozen=True, slots=True)
class Dialect:
    """An input dialect: its name, how it folds unquoted names, and where it differs.

    ``escapes`` says that a backslash in a string constant begins an escape.
    """

    name: str
    title: str
    fold: Literal["lower", "upper", "keep"]
    escapes: bool
    changes: Changes


def refuse(node: exp.Expr, headline: str, why: str, instead: str) -> Refused:
    """A refusal of what has no counterpart."""
    return Refused(Refusal("DP100", headline, why, instead, span_of(node)))


def keep_node(node: exp.Expr) -> exp.Expr:
    """The node as it is."""
    return node


def without(*names: str) -> Callable[[exp.Expr], exp.Expr]:
    """The node without arguments that the parser adds and that say nothing here."""

    def of(node: exp.Expr) -> exp.Expr:
        for name in names:
            node.set(name, None)
        return node

    return of


def number(value: int) -> exp.Expr:
    """A whole constant."""
    return exp.Literal.number(value)


def text(value: str) -> exp.Expr:
    """A text constant."""
    return exp.Literal.string(value)


def cast(node: exp.Expr, to: exp.DType) -> exp.Expr:
    """The node as another type."""
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
