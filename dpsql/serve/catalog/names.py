"""The names that PostgreSQL gives to columns that a query does not name."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from dpsql.serve.catalog.words import OWN
from dpsql.serve.tokens import Token

_ENDS = frozenset({
    "from", "where", "group", "having", "order", "limit", "offset", "union", "intersect",
    "except", "fetch", "window", "for", "into",
})  # fmt: skip
_TYPES = {"integer": "int4", "int": "int4", "bigint": "int8", "smallint": "int2",
          "boolean": "bool", "double": "float8", "real": "float4", "character": "bpchar",
          "decimal": "numeric", "char": "bpchar"}  # fmt: skip
_CONSTANT_NAMES = frozenset({
    "current_user", "session_user", "user", "current_schema", "current_catalog", "current_role",
    "current_date", "current_timestamp", "current_time", "localtime", "localtimestamp",
})  # fmt: skip
_OPERATORS = frozenset({
    "=", "<>", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", "^", "||", "~", "!~", "~*",
    "!~*", "and", "or", "not", "is", "in", "like", "ilike",
})  # fmt: skip
_TWO_WORDS = frozenset({("character", "varying"), ("double", "precision"), ("time", "zone")})
_END = Token("end", "", 0, 0)
UNNAMED = "?column?"


def column_names(tokens: Sequence[Token], deep: int = 0) -> list[str | None]:
    """The name of each item of the outermost select list; None for a star.

    >>> from dpsql.serve.tokens import tokens as read
    >>> column_names(read("SELECT count(*), a.B AS \\"X\\", 1 + 1, c::text FROM t"))
    ['count', 'X', '?column?', 'c']
    """
    if tokens and tokens[0].word == "values":
        return _of_values(tokens)
    return [_name(tokens[start:stop], deep) for start, stop in select_items(tokens)]


def shown_names(tokens: Sequence[Token], found: Sequence[str]) -> list[str]:
    """The names of all columns. ``found`` are the engine's names, which the columns of a star keep.

    >>> from dpsql.serve.tokens import tokens as read
    >>> shown_names(read("SELECT *, pg_typeof(1) FROM t"), ["a", "b", "pgf_pg_typeof(1)"])
    ['a', 'b', 'pg_typeof']
    >>> inner = "SELECT pg_typeof(1), 1 + 1"
    >>> shown_names(read(f"SELECT * FROM ({inner}) t"), ["pgf_pg_typeof(1)", "(1 + 1)"])
    ['pg_typeof', '?column?']
    """
    items = column_names(tokens)
    if items.count(None) == 1:
        star, wide = items.index(None), len(found) - len(items) + 1
        items[star : star + 1] = [None] * wide
    if len(items) != len(found):
        items = [None] * len(found)
    written = {t.name for t in tokens if t.kind in ("word", "quoted")}
    return [
        _of_engine(name, written) if item is None else item
        for item, name in zip(items, found, strict=True)
    ]


def _of_engine(name: str, written: Collection[str]) -> str:
    """The engine's name if a relation or the client gave it; else the function that was called."""
    if name in written or (name.isidentifier() and not name.startswith(OWN)):
        return name
    called = _CALLED.match(name)
    return called[1] if called is not None and called[1] in written else UNNAMED


_CALLED = re.compile(r"(?:pg[ftx]_)?(\w+)\(")


def select_items(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """The first token of each item of the outermost select list, and the token after it."""
    start = _select_list(tokens)
    if start is None:
        return []
    found, depth, at = list[tuple[int, int]](), 0, start
    for at, token in enumerate([*tokens[start:], _END], start):
        word = token.word
        ends = depth == 0 and (word in _ENDS or word == ")")
        depth += (word in "([" and word != "") - (word in ")]" and word != "")
        if ends or token is _END or (depth == 0 and word == ","):
            found.append((start, at))
            start = at + 1
        if ends:
            break
    return found


def _of_values(tokens: Sequence[Token]) -> list[str | None]:
    """The names ``column1`` and so on, as many as the first row of VALUES has items."""
    depth, count = 0, 1
    for token in tokens[1:]:
        depth += (token.text in "([") - (token.text in ")]")
        if depth == 0:
            break
        count += depth == 1 and token.text == ","
    return [f"column{number + 1}" for number in range(count)]


def _select_list(tokens: Sequence[Token]) -> int | None:
    """The first token of the list after the first outermost SELECT."""
    depth = 0
    lead = 0
    while lead < len(tokens) and tokens[lead].text == "(":
        lead += 1
    for at, token in enumerate(tokens[lead:], lead):
        if depth == 0 and token.word == "select":
            plain = tokens[at + 1 : at + 2]
            return at + 2 if plain and plain[0].word in ("all", "distinct") else at + 1
        depth += (token.text == "(") - (token.text == ")")
    return None


def _name(item: Sequence[Token], deep: int) -> str | None:
    if not item or (item[-1].text == "*" and (len(item) == 1 or item[-2].text == ".")):
        return None
    return _expression(item, deep) if body(item) == len(item) else item[-1].name


def body(item: Sequence[Token]) -> int:
    """The number of tokens of an item's expression. The tokens after it are the alias."""
    depth = 0
    for at, token in enumerate(item):
        depth += (token.text in "([") - (token.text in ")]")
        if depth == 0 and token.word == "as" and at + 1 < len(item):
            return at
    aliased = len(item) > 1 and item[-1].kind in ("word", "quoted") and _implicit(item)
    return len(item) - aliased


def _implicit(item: Sequence[Token]) -> bool:
    """Whether the last word is an alias written without AS."""
    before = item[-2]
    if item[-1].word in ("end", "null", "true", "false"):
        return False
    if (before.word, item[-1].word) in _TWO_WORDS:
        return False
    ends_value = before.kind in ("word", "quoted", "number", "string", "param", "escape")
    return (ends_value and before.word not in _OPERATORS) or before.text in (")", "]")


DEEPEST = 10
"""The deepest brackets in which a name is looked for, since each level is read once more."""


def _expression(item: Sequence[Token], deep: int = 0) -> str:
    """The name of the operand that is cast, or else the type of the last cast."""
    casts = _casts(item)
    inner = item[: casts[-1]] if casts else item
    name = UNNAMED if deep > DEEPEST or not inner else _bare(inner, deep)
    return name if name != UNNAMED or not casts else _type_name(item[casts[0] + 1 :])


def _bare(item: Sequence[Token], deep: int) -> str:
    levels = _levels(item)
    for at, (depth, token) in enumerate(levels):
        if depth == 0 and at and token.word in ("over", "filter", "within"):
            return _expression(item[:at], deep + 1)
    first, last = item[0], item[-1]
    if first.word == "case":
        return "case"
    if any(d == 0 and t.word in _OPERATORS for d, t in levels):
        return UNNAMED
    if last.kind in ("word", "quoted"):
        return UNNAMED if last.word in ("null", "true", "false") else last.name
    if last.kind == "string" and len(item) > 1 and first.kind == "word":
        return _TYPES.get(first.name, first.name)
    if last.text == "]":
        if first.word == "array":
            return "array"
        return _expression(item[: _opening(item, "[", "]")], deep + 1)
    return _called(item, deep + 1) if last.text == ")" else UNNAMED


def _called(item: Sequence[Token], deep: int) -> str:
    opening = _opening(item, "(", ")")
    if opening and item[opening - 1].word == "exists":
        return "exists"
    if opening == 1 and item[0].word == "cast":
        return _written_out(item[2:-1], deep)
    if opening and item[opening - 1].kind in ("word", "quoted"):
        return item[opening - 1].name
    inside = item[opening + 1 : -1]
    if inside and inside[0].word == "select":
        names = column_names(inside, deep)
        return (names[0] if names else None) or UNNAMED
    return _expression(inside, deep) if inside and opening == 0 else UNNAMED


def _written_out(inside: Sequence[Token], deep: int) -> str:
    """The name of ``CAST(x AS type)``: that of x, or else that of the type."""
    at = max(
        (i for i, (d, t) in enumerate(_levels(inside)) if d == 0 and t.word == "as"), default=0
    )
    name = _expression(inside[:at], deep) if at else UNNAMED
    last = [t for t in inside[at + 1 :] if t.kind in ("word", "quoted")]
    if name != UNNAMED or not last:
        return name
    return _type_name(last)


def _type_name(written: Sequence[Token]) -> str:
    """PostgreSQL's own name of a type.

    >>> from dpsql.serve.tokens import tokens as read
    >>> [_type_name(read(t)) for t in ("pg_catalog.int", "character varying(3)", "char")]
    ['int4', 'varchar', 'bpchar']
    """
    names = [t.name for t in written if t.kind in ("word", "quoted")]
    if not names:
        return UNNAMED
    name = names[1] if names[0] == "pg_catalog" and len(names) > 1 else names[0]
    if "varying" in names:
        return "varchar"
    return f"{name}tz" if "with" in names else _TYPES.get(name, name)


def _opening(item: Sequence[Token], left: str, right: str) -> int:
    depth = 0
    for at in range(len(item) - 1, -1, -1):
        depth += (item[at].text == right) - (item[at].text == left)
        if depth == 0:
            return at
    return 0


def _levels(item: Sequence[Token]) -> list[tuple[int, Token]]:
    depth, found = 0, []
    for token in item:
        depth -= token.text in (")", "]")
        found.append((depth, token))
        depth += token.text in ("(", "[")
    return found


def outer_cast(item: Sequence[Token]) -> int | None:
    """The position of the last cast of the whole expression, if the expression ends in its type."""
    return None if _operates(item) else _cast(item, len(item))


def _casts(item: Sequence[Token]) -> list[int]:
    """The positions of the casts at the end of the whole expression, from the last to the first."""
    found, at = list[int](), None if _operates(item) else _cast(item, len(item))
    while at is not None:
        found.append(at)
        at = _cast(item, at)
    return found


def _operates(item: Sequence[Token]) -> bool:
    return any(d == 0 and t.word in _OPERATORS for d, t in _levels(item))


def _cast(item: Sequence[Token], stop: int) -> int | None:
    """The position of the cast whose type ends at ``stop``; None if there is none.

    It is looked for over as many tokens as the longest type has.
    """
    for at in range(stop - 2, max(stop - _LONGEST_TYPE - 2, 0), -1):
        if item[at].text == "::":
            named = item[at + 1 : stop]
            plain = all(t.kind in ("word", "quoted", "number") or t.text in ".[](),"
                        for t in named)  # fmt: skip
            whole = all(depth >= 0 for depth, _ in _levels(named))
            return at if plain and whole else None
    return None


_LONGEST_TYPE = 8
"""The most tokens of a type's name."""
