"""Rewrites ``= ANY(array)`` and ``<> ALL(array)``, as drivers write lists, to IN and NOT IN."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from dpsql.serve.pgwire.errors import UNSUPPORTED, WireError
from dpsql.serve.pgwire.parameters import items
from dpsql.serve.tokens import Token, tokens
from dpsql.sql.parameters import builtin

_MEANT = {("=", "any"): "IN", ("=", "some"): "IN", ("<>", "all"): "NOT IN", ("!=", "all"): "NOT IN"}
_OF_NOTHING = {"IN": "IN (NULL) IS TRUE", "NOT IN": "NOT IN (NULL) IS NOT FALSE"}


def with_lists(
    text: str, read: Sequence[Token], values: Sequence[Any], *, escapes: bool = False
) -> tuple[str, Sequence[Token], list[Any]]:
    """The statement with its lists as constants. The parameters that remain are renumbered.

    Returns the text, its tokens, and the values of the parameters that remain. ``escapes`` says
    that a backslash in a constant begins an escape in the dialect of the statement.

    >>> with_lists("a = ANY($1) AND b = $2", tokens("a = ANY($1) AND b = $2"), [["x", "y"], 3])[0]
    "a IN ('x', 'y') AND b = $1"
    >>> with_lists("a=ANY($1)", tokens("a=ANY($1)"), [[1]])[0]
    'a IN (1)'
    """
    gone: set[int] = set()
    pieces, taken = list[str](), 0
    for at, end in _lists(read):
        first = read[at + 3]
        parameter = first.kind == "param"
        given = _given(first, values) if parameter else _written(read, at + 3, end)
        if given is None or read[at].start < taken:
            continue
        members = [v if isinstance(v, Written) else constant(v, escapes=escapes) for v in given]
        if parameter:
            gone.add(int(first.text[1:]) - 1)
        word = _MEANT[read[at].word, read[at + 1].word]
        listed = f"{word} ({', '.join(members)})" if members else _OF_NOTHING[word]
        before = text[taken : read[at].start]
        pieces += before, listed if before[-1:].isspace() else f" {listed}"
        taken = read[end].end
    if not pieces:
        return text, read, list(values)
    kept = [i for i in range(len(values)) if i not in gone]
    text = _renumbered("".join([*pieces, text[taken:]]), kept)
    return text, tokens(text), [values[i] for i in kept]


def _lists(read: Sequence[Token]) -> list[tuple[int, int]]:
    """The tokens at which each list begins (its comparison) and ends.

    Brackets are matched in one pass for all lists.
    """
    found: list[tuple[int, int]] = []
    opened: list[int] = []
    for at, token in enumerate(read):
        if token.text == "(":
            opened.append(at)
        elif token.text == ")" and opened:
            opening = opened.pop()
            if opening >= 2 and (read[opening - 2].word, read[opening - 1].word) in _MEANT:
                inside = read[opening + 1]
                if inside.kind in ("param", "string") or inside.word == "array":
                    found.append((opening - 2, at))
    return sorted(found)


class Written(str):
    """A constant in the words of the statement, which is copied as it is."""


def _given(token: Token, values: Sequence[Any]) -> list[Any]:
    position = int(token.text[1:]) - 1
    value = values[position] if position < len(values) else None
    if isinstance(value, str):
        value = items(value)
    return value if isinstance(value, list) else [None]


def _written(read: Sequence[Token], start: int, end: int) -> Sequence[Any] | None:
    if read[start].kind == "string":
        return items(read[start].value)
    inner: list[Token] = []
    for at in range(start + 2, end):
        token = read[at]
        if token.text == "]":
            return _split(inner)
        if token.kind not in ("string", "number", "word") and token.text not in (",", "-"):
            return None
        inner.append(token)
    return None


def _split(inner: Sequence[Token]) -> list[Written]:
    """The constants between the commas."""
    parts: list[list[str]] = [[]]
    for token in inner:
        if token.text == ",":
            parts.append([])
        else:
            parts[-1].append(token.text)
    return [Written(" ".join(part)) for part in parts if part]


def constant(value: Any, *, escapes: bool = False) -> str:
    """The value as a constant in SQL, quoted so that it is read as this value and nothing else.

    >>> constant("it's"), constant(None), constant(dt.date(2024, 5, 1))
    ("'it''s'", 'NULL', "DATE '2024-05-01'")
    """
    match exact := str(value) if type(value) is uuid.UUID else builtin(value):
        case None:
            return "NULL"
        case bool() | int():
            return str(exact).upper()
        case float() | Decimal() if math.isfinite(exact):
            return str(exact).upper()
        case dt.datetime():
            return f"TIMESTAMP '{exact.replace(tzinfo=None).isoformat(' ')}'"
        case dt.date():
            return f"DATE '{exact.isoformat()}'"
        case str():
            return _quoted(exact, escapes=escapes)
        case _:
            raise WireError(
                UNSUPPORTED, "a list with a value of this type is not answered",
                "Texts, finite numbers, dates and timestamps can be looked for in lists.",
            )  # fmt: skip


def _quoted(text: str, *, escapes: bool) -> str:
    """A text constant, with its quotes and (under ``escapes``) its backslashes escaped."""
    if escapes:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + text.replace("'", "''") + "'"


def _renumbered(text: str, kept: Sequence[int]) -> str:
    order = {f"${position + 1}": f"${number}" for number, position in enumerate(kept, 1)}
    pieces, taken = list[str](), 0
    for token in tokens(text):
        if token.kind == "param" and token.text in order:
            pieces += text[taken : token.start], order[token.text]
            taken = token.end
    return "".join([*pieces, text[taken:]])
