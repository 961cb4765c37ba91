"""A tree in a dialect's words as the tree that means the same in PostgreSQL's.

Everything behind this stage knows one dialect. What a dialect's table does not list, and what
``same`` does not say is shared by all, is refused, so that no word passes with a meaning that
it does not have there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.diagnostics.span import Span
from dpsql.sql.dialects.change import Dialect
from dpsql.sql.dialects.same import ALSO_SAME, SAME
from dpsql.sql.dialects.tables import DIALECTS, POSTGRES
from dpsql.sql.nodes import same_meaning
from dpsql.sql.own import own
from dpsql.sql.spans import span_of


def translate(tree: exp.Query, dialect: str) -> None:
    """Say the query in PostgreSQL's words; places stay where they are in the text."""
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
            _replace(node, change.of(node))


def check_text(tokens: Sequence[Token], text: str, dialect: str) -> None:
    """Refuse string constants with escapes that are read in several ways."""
    if not DIALECTS[dialect].escapes:
        return
    for token in tokens:
        if token.token_type is TokenType.STRING:
            written = text[token.start : token.end + 1]
            if "\\" in written and not _ESCAPED.fullmatch(written):
                raise Refused(_strange_escape(Span(token.start, token.end + 1)))


_ESCAPED = re.compile(r"""(?:[^\\]|\\[\\'"`nrt])*""", re.DOTALL)


def _known(node: exp.Expr, dialect: Dialect) -> bool:
    kind = type(node)
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
    """Unquoted names as the dialect stores them, and quoted from then on."""
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
        "Readers differ in what it stands for.",
        r"Write the character itself; \\, \', \", \n, \r and \t are read.",
        place,
    )
