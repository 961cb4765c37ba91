"""``= ANY(array)`` and ``<> ALL(array)``, as drivers write lists: the IN that they stand for."""

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

_MEANT = {("=", "any"): "IN", ("=", "some"): "IN", ("<>", "all"): "NOT IN", ("!=", "all"): "NOT IN"}
_OF_NOTHING = {"IN": "IN (NULL) IS TRUE", "NOT IN": "NOT IN (NULL) IS NOT FALSE"}


def with_lists(
    text: str, read: Sequence[Token], values: Sequence[Any], *, escapes: bool = False
) -> tuple[str, Sequence[Token], list[Any]]:
    """The statement with constants for its lists; the other parameters close ranks.

    ``escapes`` says that a backslash in a constant begins an escape in the dialect of the statement.

    >>> with_lists("a = ANY($1) AND b = $2", tokens("a = ANY($1) AND b = $2"), [["x", "y"], 3])[0]
    "a IN ('x', 'y') AND b = $1"
    """
    found = [(at, lists) for at in range(len(read)) if (lists := list_at(read, at)) is not None]
    if not found:
        return text, read, list(values)
    gone: set[int] = set()
    for at, (end, operand) in reversed(found):
        parameter = operand[0].kind == "param"
        given = _given(operand[0], values) if parameter else _written(operand)
        if given is None:
            continue
        members = [v if isinstance(v, Written) else constant(v, escapes=escapes) for v in given]
        if parameter:
            gone.add(int(operand[0].text[1:]) - 1)
        word = _MEANT[read[at].word, read[at + 1].word]
        listed = f"{word} ({', '.join(members)})" if members else _OF_NOTHING[word]
        text = text[: read[at].start] + listed + text[read[end].end :]
    kept = [i for i in range(len(values)) if i not in gone]
    text = _renumbered(text, kept)
    return text, tokens(text), [values[i] for i in kept]


def list_at(read: Sequence[Token], at: int) -> tuple[int, Sequence[Token]] | None:
    """Where the list that begins at a comparison ends, and what is in its brackets."""
    words = [t.word for t in read[at : at + 3]]
    if len(words) < 3 or words[2] != "(" or (words[0], words[1]) not in _MEANT:
        return None
    depth = 0
    for end in range(at + 2, len(read)):
        depth += (read[end].text == "(") - (read[end].text == ")")
        if depth == 0:
            inside = read[at + 3 : end]
            simple = inside and (inside[0].kind in ("param", "string") or inside[0].word == "array")
            return (end, inside) if simple else None
    return None


class Written(str):
    """A constant as it stands in the statement."""


def _given(token: Token, values: Sequence[Any]) -> list[Any]:
    position = int(token.text[1:]) - 1
    value = values[position] if position < len(values) else None
    if isinstance(value, str):
        value = items(value)
    return value if isinstance(value, list) else [None]


def _written(operand: Sequence[Token]) -> Sequence[Any] | None:
    if operand[0].kind == "string":
        return items(operand[0].value)
    end = next((i for i, t in enumerate(operand) if t.text == "]"), 0)
    inner = operand[2:end]
    simple = all(t.kind in ("string", "number", "word") or t.text in (",", "-") for t in inner)
    return _split(inner) if end and simple else None


def _split(inner: Sequence[Token]) -> list[Written]:
    """Constants between commas."""
    parts: list[list[str]] = [[]]
    for token in inner:
        if token.text == ",":
            parts.append([])
        else:
            parts[-1].append(token.text)
    return [Written(" ".join(part)) for part in parts if part]


def constant(value: Any, *, escapes: bool = False) -> str:
    """A value as SQL writes it, so that it is read as this value and nothing else.

    >>> constant("it's"), constant(None), constant(dt.date(2024, 5, 1))
    ("'it''s'", 'NULL', "DATE '2024-05-01'")
    """
    match value:
        case None:
            return "NULL"
        case bool() | int():
            return str(value).upper()
        case float() | Decimal() if math.isfinite(value):
            return str(value).upper()
        case dt.datetime():
            return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case uuid.UUID() | str():
            return _quoted(str(value), escapes=escapes)
        case _:
            raise WireError(
                UNSUPPORTED, "a list with a value of this type is not answered",
                "Texts, finite numbers, dates and timestamps can be looked for in lists.",
            )  # fmt: skip


def _quoted(text: str, *, escapes: bool) -> str:
    """A text constant: what ends it, or stands for something else, is written so that it does not."""
    if escapes:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + text.replace("'", "''") + "'"


def _renumbered(text: str, kept: Sequence[int]) -> str:
    for token in reversed(tokens(text)):
        position = int(token.text[1:]) - 1 if token.kind == "param" else -1
        if position in kept:
            text = f"{text[: token.start]}${kept.index(position) + 1}{text[token.end :]}"
    return text
