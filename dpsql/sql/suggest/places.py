"""Finds the node that a refusal points at, and the nodes around it."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dpsql.diagnostics.span import Span
from dpsql.effort import step
from dpsql.sql.suggest.writer import place_of


def at(tree: exp.Expr, span: Span | None) -> exp.Expr | None:
    """The outermost node with exactly this place, or None."""
    if span is None:
        return None
    return next((node for node in _around(tree, span) if place_of(node) == span), None)


def innermost(tree: exp.Expr, span: Span | None) -> exp.Expr:
    """The smallest node that contains the place; the whole tree if none does."""
    found = tree
    for node in [] if span is None else _around(tree, span):
        found = node
    return found


def _around(tree: exp.Expr, span: Span) -> Iterator[exp.Expr]:
    """Each node that contains the place, from the outermost to the innermost."""
    current: exp.Expr | None = tree
    while current is not None:
        place = place_of(current)
        if place is not None and place.start <= span.start and span.end <= place.end:
            yield current
        step()
        current = next((n for n in current.iter_expressions() if _holds(n, span)), None)


def _holds(node: exp.Expr, span: Span) -> bool:
    place = place_of(node)
    return place is not None and place.start <= span.start and span.end <= place.end


def upward(node: exp.Expr) -> Iterator[exp.Expr]:
    """The node and all its ancestors, from the inside out."""
    current: exp.Expr | None = node
    while current is not None:
        yield current
        current = current.parent


def outermost_select(tree: exp.Expr) -> exp.Select | None:
    """The SELECT whose outputs are those of the answer, or None."""
    while isinstance(tree, exp.Subquery):
        tree = tree.this
    return tree if isinstance(tree, exp.Select) else None
