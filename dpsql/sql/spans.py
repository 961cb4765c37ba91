"""Where in the text a syntax-tree node stands."""

from __future__ import annotations

from sqlglot import exp

from dpsql.diagnostics.span import Span


def span_of(node: exp.Expr) -> Span | None:
    """The text range of the node: all that its parts cover, else its nearest parent's."""
    current: exp.Expr | None = node
    while current is not None:
        found = _cover(current)
        if found is not None:
            return found
        current = current.parent
    return None


def _cover(node: exp.Expr) -> Span | None:
    found: Span | None = None
    stack = [node]
    while stack:
        part = stack.pop()
        start, end = part.meta.get("start"), part.meta.get("end")
        if isinstance(start, int) and isinstance(end, int):
            here = Span(start, end + 1)
            found = here if found is None else found.cover(here)
        stack.extend(part.iter_expressions())
    return found
