"""Refuses words that a client may not write in a catalog query.

The check comes before the rewrite, since after it the rewrite's own names cannot be told from those
of the client.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dpsql.serve.catalog.words import OWN, SCHEMAS
from dpsql.serve.pgwire.errors import (
    LIMIT,
    NO_COLUMN,
    NO_FUNCTION,
    NO_SCHEMA,
    SYNTAX,
    UNSUPPORTED,
    WireError,
)
from dpsql.serve.tokens import Token

_NAMES = ("word", "quoted")
MOST_NESTED = 4
"""The deepest nesting of macro calls, each of which copies its arguments up to four times."""
MOST_BRACKETS = 50
"""The deepest nesting of brackets, each of which has its content read once more."""
MOST_WORDS = 40_000
"""The most words, numbers and signs of a statement. The rewrite of so many takes about a second."""


def check_size(tokens: Sequence[Token]) -> None:
    """Refuse statements that would take long to rewrite in the process that serves all clients.

    >>> from dpsql.serve.tokens import tokens as read
    >>> check_size(read("SELECT " + "(" * 50 + "1" + ")" * 50))
    >>> check_size(read("SELECT " + "[" * 51 + "1" + "]" * 51))
    Traceback (most recent call last):
    dpsql.serve.pgwire.errors.WireError: brackets are nested too deeply
    """
    if len(tokens) > MOST_WORDS:
        raise WireError(
            LIMIT, f"a catalog query has at most {MOST_WORDS} words, numbers and signs",
            hint="Ask for fewer names at a time.",
        )  # fmt: skip
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth > MOST_BRACKETS:
            raise _error(LIMIT, "brackets are nested too deeply", token)


def check_words(tokens: Sequence[Token]) -> None:
    """Refuse names that only a rewrite writes, calls in other schemas, methods and braces.

    >>> from dpsql.serve.tokens import tokens as read
    >>> check_words(read("SELECT pg_catalog.lower('A'), a.b FROM pg_class a"))
    >>> check_words(read("SELECT main.lower('A')"))
    Traceback (most recent call last):
    dpsql.serve.pgwire.errors.WireError: schema "main" does not exist
    """
    for at, token in enumerate(tokens):
        if token.kind in _NAMES:
            called = [t.text for t in tokens[at + 1 : at + 2]] == ["("]
            if token.name.lower().startswith(OWN):
                raise _own(token, called=called)
            if called and at and tokens[at - 1].text == ".":
                _check_schema(tokens, at)
        elif token.text in ("{", "}"):
            raise _error(SYNTAX, f'syntax error at or near "{token.text}"', token)


def check_depth(tokens: Sequence[Token], macros: Collection[str]) -> None:
    """Refuse macro calls that are nested so deeply that their expansion would take minutes."""
    opened, depth = list[bool](), 0
    for at, token in enumerate(tokens):
        if token.text == "(":
            opened.append(at > 0 and f"pgf_{tokens[at - 1].name}" in macros)
            depth += opened[-1]
        elif token.text == ")" and opened:
            depth -= opened.pop()
        if depth > MOST_NESTED:
            raise _error(LIMIT, "calls of these functions are nested too deeply", token)


def _own(token: Token, *, called: bool) -> WireError:
    if called:
        return _error(NO_FUNCTION, f"function {token.name} does not exist", token)
    return _error(NO_COLUMN, f'column "{token.name}" does not exist', token)


def _check_schema(tokens: Sequence[Token], at: int) -> None:
    """Refuse calls in schemas other than PostgreSQL's own, and method calls on values."""
    if at < 2 or tokens[at - 2].kind not in _NAMES:
        raise _error(SYNTAX, f'syntax error at or near "{tokens[at].text}"', tokens[at])
    schema = tokens[at - 2]
    if at > 2 and tokens[at - 3].text == ".":
        said = f"cross-database references are not implemented: {tokens[at].name}"
        raise _error(UNSUPPORTED, said, tokens[at])
    if schema.name not in SCHEMAS:
        raise _error(NO_SCHEMA, f'schema "{schema.name}" does not exist', schema)


def _error(state: str, said: str, token: Token) -> WireError:
    return WireError(state, said, position=token.start + 1)
