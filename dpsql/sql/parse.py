"""SQL text to a syntax tree inside the closed world."""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.diagnostics.refusal import Refusal, Refused, Stopped
from dpsql.diagnostics.span import Span
from dpsql.effort import step
from dpsql.policy.types import Scalar
from dpsql.sql import allow
from dpsql.sql.clauses import Taken, attach_bounds, attach_clauses, take
from dpsql.sql.dialects.translate import check_text, translate
from dpsql.sql.group_all import mark_group_all
from dpsql.sql.grouping_brackets import add_brackets, without_brackets
from dpsql.sql.intervals import whole_intervals
from dpsql.sql.lists import resolve_lists
from dpsql.sql.own import resolve_aliases, resolve_tables
from dpsql.sql.parameters import STRANGE
from dpsql.sql.parser import MOST_JOINS, MOST_TYPES, nests_joins, nests_types, read_statements
from dpsql.sql.placeholders import number_placeholders, set_values
from dpsql.sql.renamed import rename_calls
from dpsql.sql.spans import locate

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # sqlglot's warnings quote the statement

LONGEST_TEXT = 200_000
LONGEST_NAME = 128
MOST_NODES = 20_000
DEEPEST = 150
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


@dataclass(frozen=True, slots=True)
class Source:
    """A statement as it was sent: its text, its dialect, and the values of its parameters."""

    text: str
    dialect: str = "postgres"
    parameters: Sequence[Scalar | float | None] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed query; every node of its tree is listed in ``allow``."""

    source: Source
    tree: exp.Query

    @property
    def schemas(self) -> frozenset[str]:
        """The schemas with which tables are qualified, in lower case."""
        named = (table.args.get("db") for table in self.tree.find_all(exp.Table))
        return frozenset(schema.name.lower() for schema in named if schema is not None)


def parse(source: Source) -> Parsed:
    """Read one query; anything unexpected raises a refusal, whatever the cause."""
    text = source.text
    tokens, tree = read(source)
    try:
        if not isinstance(tree, exp.Query):
            raise Refused(_not_a_query(Span(tokens[0].start, tokens[0].end + 1)))
        check_text(tokens, text, source.dialect)
        resolve_lists(tree)
        resolve_tables(tree)
        mark_group_all(tree)
        translate(tree, source.dialect)
        resolve_aliases(tree)
    except Refused as refused:
        raise refused.within(text) from None
    problems = allow.refusals(tree)
    if problems:
        raise Refused(*problems[:5], text=text)
    return Parsed(source, tree)


def read(source: Source) -> tuple[list[Token], exp.Expr]:
    """The tokens and the tree of one statement as it is written; each node has its place."""
    text = source.text
    if len(text) > LONGEST_TEXT:
        raise Refused(_too_large(f"{LONGEST_TEXT} characters"))
    strange = STRANGE.search(text)
    if strange is not None:
        raise Refused(_not_text(Span(*strange.span())), text=text)
    tokens, taken, trees = _read(source)
    for token in tokens:
        if token.token_type in _NAMES and len(token.text) > LONGEST_NAME:
            place = Span(token.start, token.end + 1)
            raise Refused(_too_large(f"{LONGEST_NAME} characters in a name", place), text=text)
    found = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(found) != 1:
        raise Refused(_not_one(len(found)), text=text)
    tree = found[0]
    _measure(tree)
    try:
        set_values(tree, source.parameters, source.dialect)
        rename_calls(tree)
        locate(tree, taken.tokens)
        attach_clauses(tree, taken)
        attach_bounds(tree, taken)
    except Refused as refused:
        raise refused.within(text) from None
    return tokens, tree


def _read(source: Source) -> tuple[list[Token], Taken, list[exp.Expr | None]]:
    """The tokens and trees of a text; any error of the parser becomes one refusal."""
    tokens: list[Token] = []
    glued = _glued(source.text)
    try:
        tokens = _tokens(source, glued)
    except Exception:  # noqa: BLE001 (a third-party parser may raise anything; all is one refusal)
        raise Refused(_untokenized(source.text), text=source.text) from None
    try:
        taken = take(whole_intervals(number_placeholders(tokens)), source.text)
    except Refused as refused:
        raise refused.within(source.text) from None
    try:
        if nests_types(tokens, source.dialect):
            raise Refused(_too_large(f"{MOST_TYPES} types inside one another"))
        if nests_joins(tokens):
            raise Refused(_too_large(f"{MOST_JOINS} joins that wait for their ON"))
        plain = taken.tokens == tokens and not glued
        parsed = add_brackets(tokens if plain else taken.marked())
        trees = read_statements(parsed, source.text, source.dialect)
    except ParseError as error:
        raise Refused(_syntax(_place(error, tokens)), text=source.text) from None
    except (Refused, Stopped):  # too many steps, or the end of the time limit
        raise
    except Exception:  # noqa: BLE001 (as above)
        raise Refused(_syntax(None), text=source.text) from None
    for tree in filter(None, trees):
        without_brackets(tree)
    return tokens, taken, trees


_BETWEEN = re.compile(r"\$\d[^\s$]*\$")
_PARAMETER = re.compile(
    r"""('(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | (\$(?:[^\W\d]\w*)?\$).*?\2) | \$(?=\d)""",
    re.VERBOSE | re.DOTALL,
)


def _glued(text: str) -> list[int]:
    """The places of parameters, if one may be taken for a quote: ``$1,$`` is one to the tokenizer.

    The list is empty if quotes are hard to recognize. Then the statement is refused, unless there
    are blanks between its parameters.

    >>> _glued("SELECT f($1,$2), '$3,$4', $a$ $5,$6 $a$"), _glued("SELECT $1, $2")
    ([9, 12], [])
    """
    if not _BETWEEN.search(text) or "\\" in text or text.count("/*") > 1 or _many_tags(text):
        return []
    return [found.start() for found in _PARAMETER.finditer(text) if found[1] is None]


def _many_tags(text: str) -> bool:
    """Whether there are so many different ``$tag$`` that a search for each end would take long."""
    return len(set(_TAG.findall(text))) > 20


_TAG = re.compile(r"(?=(\$\w*\$))")


def _tokens(source: Source, glued: list[int]) -> list[Token]:
    """The tokens of the text, read with a blank before each of the places ``glued``.

    The tokens have their places in the original text.
    """
    text = source.text
    parts = [text[start:end] for start, end in zip([0, *glued], [*glued, len(text)], strict=True)]
    read = sqlglot.tokenize(" ".join(parts), read=source.dialect)
    if not glued:
        return read
    blanks = [place + i for i, place in enumerate(glued)]
    found = []
    for token in read:
        early = bisect_left(blanks, token.start)
        place = {"start": token.start - early, "end": token.end - early}
        found.append(
            Token(
                token.token_type,
                token.text,
                token.line,
                token.col,
                **place,
                comments=token.comments,
            )
        )
    return found


def _place(error: ParseError, tokens: list[Token]) -> Span | None:
    """The place of the token of the first error; the parser gives its line and last column."""
    first = error.errors[0] if error.errors else {}
    for token in tokens:
        if (token.line, token.col) == (first.get("line"), first.get("col")):
            return Span(token.start, token.end + 1)
    return None


def _measure(tree: exp.Expr) -> None:
    """Refuse trees that are too large or too deep for the later stages, which recurse."""
    count, level = 0, [tree]
    for _ in range(DEEPEST):
        count += len(level)
        if not level or count > MOST_NODES:
            break
        level = [child for node in level for child in node.iter_expressions()]
    step(15 * count)
    if level or count > MOST_NODES:
        raise Refused(_too_large(f"{MOST_NODES} parts or {DEEPEST} levels"))


def _syntax(span: Span | None) -> Refusal:
    return Refusal(
        "DP102",
        "the statement does not parse",
        "Something at or just before the marked place is not SQL that dpsql reads."
        if span
        else "The parser cannot read it. No data was read.",
        "Check brackets, commas and quotes there. Text is written 'text', a name \"name\"."
        if span
        else "Write it as one plain SELECT.",
        span,
    )


def _untokenized(text: str) -> Refusal:
    start = _open_quote(text)
    return Refusal(
        "DP102",
        "a quote or comment is not closed" if start is not None else "the statement does not parse",
        "The end of a quoted text decides what is SQL and what is a value.",
        "Close it. A quote inside a text is doubled: 'it''s'.",
        None if start is None else Span(start, start + 1),
    )


_QUOTED = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | (\$\w*\$).*?\1 | [^'"$/-]+ | [$/-](?!\*)""",
    re.VERBOSE | re.DOTALL,
)


def _open_quote(text: str) -> int | None:
    """The start of a quote or comment that is not closed, or None."""
    position = len(text) if _many_tags(text) else 0
    while position < len(text):
        found = _QUOTED.match(text, position)
        if found is None:
            return position
        position = found.end()
    return None


def _not_text(span: Span) -> Refusal:
    return Refusal(
        "DP102",
        "the statement holds a character that is not text",
        "NUL bytes and halves of characters cannot be shown or stored.",
        "Send the statement as UTF-8.",
        span,
    )


def _not_one(count: int) -> Refusal:
    said = "the statement is empty" if count == 0 else f"{count} statements where one is expected"
    return Refusal(
        "DP103", said, "Each statement is planned and paid for by itself.", "Send one query."
    )


def _not_a_query(span: Span) -> Refusal:
    return Refusal(
        "DP100",
        "only queries are answered",
        "dpsql only reads: it does not change data, and it runs nothing but aggregates.",
        "Send a SELECT.",
        span,
    )


def _too_large(limit: str, span: Span | None = None) -> Refusal:
    return Refusal(
        "DP115",
        f"the statement has more than {limit}",
        "Planning time is bounded so that no statement can keep others waiting.",
        "Split it, or shorten its lists and names.",
        span,
    )
