"""Marks with which a translation tells the binder what a node means.

They are for cases in which the meaning depends on types, which only the binder knows.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

KEEPS_DATE = "keeps date"
"""A date that is truncated or moved by whole days stays a date."""
SIX_DIGITS = "six digits"
"""The quotient of whole numbers is rounded to six digits after the point."""
WHOLE_ONLY = "whole only"
"""The division is answered for whole numbers only."""
NO_DAYS = "no days"
"""The difference of two dates is not a number of days."""
NO_TIMES = "no times"
"""Timestamps are written as text in another form than PostgreSQL's."""
NO_DOUBLES = "no doubles"
"""Numbers with a fraction are written as text in another form than PostgreSQL's."""
ROUNDS_AWAY = "rounds away"
"""A cast to a whole number rounds halves away from zero."""
_KEY = "marks"


def mark_node(node: exp.Expr, *marks: str) -> exp.Expr:
    """Add these marks to the node, and return it."""
    node.meta[_KEY] = frozenset({*marks, *_marks(node)})
    return node


def has(node: exp.Expr, mark: str) -> bool:
    """Whether the node has a mark."""
    return mark in _marks(node)


def _marks(node: exp.Expr) -> Iterable[str]:
    found = node.meta.get(_KEY)
    return found if isinstance(found, frozenset) else ()
