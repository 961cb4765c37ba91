"""Writes a changed syntax tree as text; unchanged parts stay as the analyst wrote them.

A changed node loses its place, and so do all nodes around it. A node that still has a place is
copied from the statement, and the rest is written by the parser's own generator. The text is then
parsed again. If that does not give the changed tree with the same clauses, there is no text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import sqlglot
from sqlglot import exp

from dpsql.diagnostics.refusal import Refused
from dpsql.diagnostics.span import Span
from dpsql.effort import step
from dpsql.sql.clauses import bounds_of, clause_of
from dpsql.sql.parse import Source, read
from dpsql.sql.spans import written_name

_COPIED = (exp.Condition, exp.Alias, exp.Subquery, exp.Table, exp.Ordered)
"""The nodes that are copied if they have a place. Clauses around them are generated."""
_PLACE = ("start", "end")
Form = Literal["as named", "as meant", "anew"]


def place_of(node: exp.Expr) -> Span | None:
    """The place of the node in the statement; None if the node was changed."""
    start, end = (node.meta.get(name) for name in _PLACE)
    return Span(start, end + 1) if isinstance(start, int) and isinstance(end, int) else None


def touch(node: exp.Expr | None) -> None:
    """Mark a node as changed: it and the nodes around it are not copied."""
    while node is not None:
        for name in _PLACE:
            node.meta.pop(name, None)
        node = node.parent


def put(node: exp.Expr, new: exp.Expr) -> None:
    """Replace a node by another one."""
    touch(node)
    node.replace(new)


def fragment(sql: str, dialect: str) -> exp.Expr:
    """The nodes of an expression that a rule wrote, without places."""
    step(50 + len(sql))
    tree = sqlglot.parse_one(sql, read=dialect)
    for node in tree.walk():
        touch(node)
    return tree


def count_star() -> exp.Expr:
    """``COUNT(*)``, as the parser reads it."""
    return exp.Count(this=exp.Star(), big_int=True)


def generate_text(node: exp.Expr, dialect: str, *, pretty: bool = False) -> str:
    """The node as the parser's generator writes it; "" if it fails."""
    try:
        return str(node.sql(dialect=dialect, pretty=pretty, comments=False))
    except Exception:  # noqa: BLE001 (a third-party generator may raise anything; then nothing is suggested)
        return ""


def text_of(node: exp.Expr, source: Source) -> str:
    """The node in the analyst's words if its place has all of them; else as generated."""
    place = place_of(node)
    words = "" if place is None else source.text[place.start : place.end]
    if isinstance(node, _COPIED) and words:
        step(15 * sum(1 for _ in node.walk()))
        try:
            if sqlglot.parse_one(words, read=source.dialect) == node:
                return words
        except sqlglot.errors.SqlglotError:
            pass  # the place has only a part of an expression
    return generate_text(node, source.dialect).strip() or words


def write(tree: exp.Expr, source: Source) -> str:
    """The tree as a statement; "" if the text does not parse to the same tree."""
    step(15 * sum(1 for _ in tree.walk()))
    for form in ("as named", "as meant", "anew"):
        text = _written(tree, source, form)
        if text and _reads_as(text, tree, source):
            return text
    return ""


def _written(tree: exp.Expr, source: Source, form: Form) -> str:
    """A text of the tree in one of three forms.

    ``as named``: generated calls have the names that the analyst wrote. ``as meant``: they have the
    parser's names. ``anew``: nothing is copied.
    """
    root = tree.copy()
    for select in root.find_all(exp.Select):
        clause = clause_of(select)
        if clause is not None and clause.terms.span is not None:
            span = clause.terms.span
            words = exp.Var(this=source.text[span.start : span.end])
            select.set("operation_modifiers", [words])
    if form != "anew":
        _copy(root, source)
    if any(bounds_of(node) is not None for node in root.walk()):
        return ""
    for call in list(root.find_all(exp.Func)) if form == "as named" else []:
        if written_name(call):
            call.replace(
                exp.Anonymous(this=written_name(call), expressions=list(call.iter_expressions()))
            )
    pretty = "\n" in source.text.strip()
    return generate_text(root, source.dialect, pretty=pretty)


def _copy(node: exp.Expr, source: Source) -> None:
    """Replace each unchanged node by the analyst's words for it."""
    for child in list(node.iter_expressions()):
        place = place_of(child)
        if place is not None and isinstance(child, _COPIED):
            child.replace(exp.Var(this=source.text[place.start : place.end]))
        else:
            _copy(child, source)


def _reads_as(text: str, tree: exp.Expr, source: Source) -> bool:
    try:
        _, again = read(Source(text, source.dialect, source.parameters))
    except Refused:
        return False
    return again == tree and list(_terms(again)) == list(_terms(tree))


def _terms(tree: exp.Expr) -> Iterator[object]:
    """The terms of all clauses and named arguments, without their places."""
    for node in tree.walk():
        clause, bounds = clause_of(node), bounds_of(node)
        if clause is not None:
            t = clause.terms
            yield (clause.unit, t.epsilon, t.delta, t.groups, t.rows, t.selection, t.least)
        if bounds is not None:
            yield (bounds.row, bounds.group)
