"""Translates the tree of a statement from its dialect to PostgreSQL's dialect.

All later stages know only PostgreSQL's dialect. A construct is refused if it is neither in the
dialect's table nor in ``same``. So no construct is read with a meaning that it does not have in its
dialect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.diagnostics.span import Span
from dpsql.sql.dialects.change import Change, Dialect
from dpsql.sql.dialects.same import ALSO_SAME, SAME
from dpsql.sql.dialects.tables import DIALECTS, POSTGRES
from dpsql.sql.nodes import same_meaning
from dpsql.sql.own import own
from dpsql.sql.spans import span_of


def translate(tree: exp.Query, dialect: str) -> None:
    """Translate the query to PostgreSQL's dialect in place; nodes keep their places in the text."""
    known = DIALECTS[dialect]
    if known is POSTGRES:
        return
    nodes = list(tree.walk(bfs=True))
    problems = [_unknown(node, known) for node in nodes if not _known(node, known)]
    if problems:
        raise Refused(*problems[:5])
    _fold(nodes, known)
    for node in reversed(nodes):
        change = known.changes.get(type(node))
        if change is not None:
            _replace(node, _changed(node, change, known))


def _changed(node: exp.Expr, change: Change, dialect: Dialect) -> exp.Expr:
    """The translated node; refused if the translation ignores one of its arguments."""
    optional = [name for name, needed in node.arg_types.items() if not needed]
    given = [n for n in optional if isinstance(node.args.get(n), exp.Expr) and n not in _ADDED]
    probes = [(name, node.copy()) for name in given]
    new = change.of(node)
    if new is node:
        return new
    for name, probe in probes:
        probe.set(name, exp.column("probe"))
        ignored = False
        with suppress(Exception):  # an error shows that the argument was read
            ignored = change.of(probe) == new
        if ignored:
            raise Refused(_unread(node, name, dialect))
    return new


_ADDED = ("default_year",)
"""Arguments that the parser adds by itself."""


def _unread(node: exp.Expr, argument: str, dialect: Dialect) -> Refusal:
    name = str(node.sql_name()).upper() if isinstance(node, exp.Func) else type(node).__name__
    return Refusal(
        "DP100",
        f"{name} with {argument.replace('_', ' ')} is not in the SQL that dpsql answers in"
        f" {dialect.title}'s dialect",
        "Only constructs whose meaning there is known are run; everything else is refused, "
        "whatever the data.",
        "Leave it out, or write it in PostgreSQL's dialect: SET dpsql.dialect = 'postgres'.",
        span_of(node),
    )


def check_text(tokens: Sequence[Token], text: str, dialect: str) -> None:
    """Refuse string constants with escape sequences that readers interpret differently."""
    if not DIALECTS[dialect].escapes:
        return
    for token in tokens:
        if token.token_type is TokenType.STRING:
            written = text[token.start : token.end + 1]
            if "\\" in written and not _ESCAPED.fullmatch(written):
                raise Refused(_strange_escape(Span(token.start, token.end + 1)))


_ESCAPED = re.compile(r"""(?:[^\\]|\\[\\'"`nrt])*""", re.DOTALL)


_COMPARISONS = (exp.EQ, exp.NEQ, exp.In)


def _known(node: exp.Expr, dialect: Dialect) -> bool:
    kind = type(node)
    if dialect.name == "duckdb" and kind is exp.Tuple and isinstance(node.parent, _COMPARISONS):
        return False  # in DuckDB's rows NULL is equal to NULL
    return (
        bool(own(node))
        or kind in SAME
        or kind in dialect.changes
        or kind in ALSO_SAME[dialect.name]
        or same_meaning(node, dialect.name)
    )


def _replace(node: exp.Expr, new: exp.Expr) -> None:
    if new is node or node.parent is None:
        return
    place = span_of(node)
    for name, value in node.meta.items():
        new.meta.setdefault(name, value)
    node.replace(new)
    if place is not None:
        new.meta["start"], new.meta["end"] = place.start, place.end - 1


def _fold(nodes: Sequence[exp.Expr], dialect: Dialect) -> None:
    """Fold unquoted names as the dialect stores them, and mark them as quoted."""
    for node in nodes:
        if isinstance(node, exp.Identifier) and not node.args.get("quoted"):
            name = str(node.this)
            node.set("this", name.upper() if dialect.fold == "upper" else name)
            node.set("quoted", True)


def _unknown(node: exp.Expr, dialect: Dialect) -> Refusal:
    if isinstance(node, exp.Anonymous):
        name = f'"{node.args.get("this")}"'
    elif isinstance(node, exp.Func):
        name = str(node.sql_name()).upper()
    else:
        name = re.sub("(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
    return Refusal(
        "DP107" if isinstance(node, exp.Func) else "DP100",
        f"{name} is not in the SQL that dpsql answers in {dialect.title}'s dialect",
        "Only constructs whose meaning there is known are run; everything else is refused, "
        "whatever the data.",
        "Leave it out, or write it in PostgreSQL's dialect: SET dpsql.dialect = 'postgres'.",
        span_of(node),
    )


def _strange_escape(place: Span) -> Refusal:
    return Refusal(
        "DP205",
        "this escape in a text is not answered",
        "Systems read it differently.",
        r"Write the character itself; \\, \', \", \n, \r and \t are read.",
        place,
    )
