"""``has_table_privilege('orders', 'select')`` and its like: a name that nothing has is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from dpsql.serve.tokens import Token

_ABOUT: Mapping[str, tuple[str, int]] = MappingProxyType({
    "has_table_privilege": ("regclass", 2), "has_any_column_privilege": ("regclass", 2),
    "has_column_privilege": ("regclass", 3), "has_schema_privilege": ("regnamespace", 2),
})  # fmt: skip
"""The kind of what is asked about, and its place from the end: a role may come before it."""


def looked_up(tokens: Sequence[Token]) -> list[Token]:
    """The statement with the names in these calls cast to what they name.

    >>> from dpsql.serve.tokens import tokens as read
    >>> " ".join(t.text for t in looked_up(read("SELECT has_table_privilege('a', 'select')")))
    "SELECT has_table_privilege ( 'a' :: regclass , 'select' )"
    """
    found = list(tokens)
    for at in range(len(tokens) - 2, -1, -1):
        if tokens[at].name in _ABOUT and tokens[at + 1].text == "(":
            kind, place = _ABOUT[tokens[at].name]
            spans = _arguments(tokens, at + 2)
            start, stop = spans[-place] if len(spans) >= place else (0, 0)
            if stop - start == 1 and tokens[start].kind == "string":
                name = tokens[start]
                colons = name._replace(kind="op", text="::")
                found[stop:stop] = [colons, name._replace(kind="word", text=kind)]
    return found


def _arguments(tokens: Sequence[Token], start: int) -> list[tuple[int, int]]:
    """Where each argument of a call begins and ends; none of one that is not closed."""
    found, depth = list[tuple[int, int]](), 1
    for at in range(start, len(tokens)):
        depth += (tokens[at].text in ("(", "[")) - (tokens[at].text in (")", "]"))
        if depth == 0 or (depth == 1 and tokens[at].text == ","):
            found.append((start, at))
            start = at + 1
        if depth == 0:
            return found
    return []
