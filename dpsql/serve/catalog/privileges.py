"""Casts the names in calls such as ``has_table_privilege('orders', 'select')``.

So a name that does not exist is an error, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from dpsql.serve.tokens import Token

_ABOUT: Mapping[str, tuple[str, int]] = MappingProxyType({
    "has_table_privilege": ("regclass", 2), "has_any_column_privilege": ("regclass", 2),
    "has_column_privilege": ("regclass", 3), "has_schema_privilege": ("regnamespace", 2),
})  # fmt: skip
"""The kind of object that each function is about, and the position of its name from the end.

It is counted from the end because a role may come before it.
"""


def cast_names(tokens: Sequence[Token]) -> list[Token]:
    """The statement with the names in these calls cast to the kinds of objects that they name.

    >>> from dpsql.serve.tokens import tokens as read
    >>> " ".join(t.text for t in cast_names(read("SELECT has_table_privilege('a', 'select')")))
    "SELECT has_table_privilege ( 'a' :: regclass , 'select' )"
    """
    kinds, found = _kinds(tokens), list[Token]()
    for at, token in enumerate(tokens):
        found.append(token)
        if at in kinds:
            found.append(token._replace(kind="op", text="::"))
            found.append(token._replace(kind="word", text=kinds[at]))
    return found


def _kinds(tokens: Sequence[Token]) -> dict[int, str]:
    """The kinds of objects named in such calls, by the positions of the names.

    Brackets are matched once, for all calls.
    """
    found: dict[int, str] = {}
    opened: list[list[int]] = []
    """For each open bracket, the positions at which its arguments begin."""
    for at, token in enumerate(tokens):
        if token.text in ("(", "["):
            opened.append([at + 1])
        elif opened and token.text == ",":
            opened[-1].append(at + 1)
        elif opened and token.text in (")", "]"):
            starts = [*opened.pop(), at + 1]
            called = tokens[max(starts[0] - 2, 0)].name
            kind, place = _ABOUT.get(called, ("", 0))
            if not 0 < place < len(starts):
                continue
            name = starts[-place - 1]
            alone = starts[-place] == name + 2
            if tokens[starts[0] - 1].text == "(" and alone and tokens[name].kind == "string":
                found[name] = kind
    return found
