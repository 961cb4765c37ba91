"""What a translation tells the binder of a node, where only types decide what is meant."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

KEEPS_DATE = "keeps date"
"""A date that is cut or moved by whole days stays a date."""
SIX_DIGITS = "six digits"
"""The quotient of whole numbers is rounded to six digits behind the point."""
WHOLE_ONLY = "whole only"
"""A division that is answered of whole numbers only."""
NO_DAYS = "no days"
"""The difference of two dates is no number of days."""
NO_TIMES = "no times"
"""Timestamps are written as text in another form than PostgreSQL's."""
NO_DOUBLES = "no doubles"
"""Numbers with a fraction are written as text in another form than PostgreSQL's."""
ROUNDS_AWAY = "rounds away"
"""A number becomes whole by rounding halves away from zero."""
_KEY = "marks"


def mark_node(node: exp.Expr, *marks: str) -> exp.Expr:
    """The node with these marks."""
    node.meta[_KEY] = frozenset({*marks, *_marks(node)})
    return node


def has(node: exp.Expr, mark: str) -> bool:
    """Whether the node has a mark."""
    return mark in _marks(node)


def _marks(node: exp.Expr) -> Iterable[str]:
    found = node.meta.get(_KEY)
    return found if isinstance(found, frozenset) else ()
