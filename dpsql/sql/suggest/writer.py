"""A changed syntax tree as text: what was not changed stands there as the analyst wrote it.

A node that is changed loses its place, and so do all nodes around it. What still has a place is copied from
the statement; the rest is written by the parser's own generator. The text is then read again: unless that
gives the changed tree, clause for clause, there is no text.
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
"""What is copied where it has a place; clauses are written around it."""
_PLACE = ("start", "end")
Form = Literal["as named", "as meant", "anew"]


def place_of(node: exp.Expr) -> Span | None:
    """Where the node stands in the statement, unless it was changed."""
    start, end = (node.meta.get(name) for name in _PLACE)
    return Span(start, end + 1) if isinstance(start, int) and isinstance(end, int) else None


def touch(node: exp.Expr | None) -> None:
    """Say that a node was changed: it and what is around it is not copied."""
    while node is not None:
        for name in _PLACE:
            node.meta.pop(name, None)
        node = node.parent


def put(node: exp.Expr, new: exp.Expr) -> None:
    """Put another node in the place of one."""
    touch(node)
    node.replace(new)


def fragment(sql: str, dialect: str) -> exp.Expr:
    """An expression that was written by a rule, as nodes without a place."""
    step(50 + len(sql))
    tree = sqlglot.parse_one(sql, read=dialect)
    for node in tree.walk():
        touch(node)
    return tree


def count_star() -> exp.Expr:
    """``COUNT(*)``, as the parser reads it."""
    return exp.Count(this=exp.Star(), big_int=True)


def generate_text(node: exp.Expr, dialect: str, *, pretty: bool = False) -> str:
    """The node as the generator writes it; empty where it cannot."""
    try:
        return str(node.sql(dialect=dialect, pretty=pretty, comments=False))
    except Exception:  # noqa: BLE001 (a third-party generator may raise anything; then nothing is suggested)
        return ""


def text_of(node: exp.Expr, source: Source) -> str:
    """The node in the analyst's words, where they are all in its place; else as the generator writes it."""
    place = place_of(node)
    words = "" if place is None else source.text[place.start : place.end]
    if isinstance(node, _COPIED) and words:
        step(15 * sum(1 for _ in node.walk()))
        try:
            if sqlglot.parse_one(words, read=source.dialect) == node:
                return words
        except sqlglot.errors.SqlglotError:
            pass  # a piece of something
    return generate_text(node, source.dialect).strip() or words


def write(tree: exp.Expr, source: Source) -> str:
    """The tree as a statement; empty where that cannot be read again as the same tree."""
    step(15 * sum(1 for _ in tree.walk()))
    for form in ("as named", "as meant", "anew"):
        text = _written(tree, source, form)
        if text and _reads_as(text, tree, source):
            return text
    return ""


def _written(tree: exp.Expr, source: Source, form: Form) -> str:
    """A text. Calls that are not copied have the names that the analyst wrote, or those of the parser."""
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
    """Put the analyst's words in the place of each node that is as they wrote it."""
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
    """What clauses and named arguments ask for, wherever they stand."""
    for node in tree.walk():
        clause, bounds = clause_of(node), bounds_of(node)
        if clause is not None:
            t = clause.terms
            yield (clause.unit, t.epsilon, t.delta, t.groups, t.rows, t.selection, t.least)
        if bounds is not None:
            yield (bounds.row, bounds.group)
