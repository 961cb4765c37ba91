"""Keeps the type of a column that ends in a cast to a type that the engine does not have.

The engine would answer such a cast as text. So the outermost of these casts is replaced by a call
of a macro, which packs the value into a struct named after the type. ``packed_oid`` and
``unpack_column`` read the type and the value from the struct.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from dpsql.serve.catalog.names import body, outer_cast, select_items
from dpsql.serve.pgwire import oids
from dpsql.serve.pgwire.errors import BAD_TEXT, LIMIT, WireError
from dpsql.serve.tokens import Token

_PACKED = re.compile(
    r'STRUCT\("?pgx_(?:([a-z]+)"? VARCHAR|(reg[a-z]+)"? UINTEGER, "?name"? VARCHAR)\)'
)
_NAMES: Mapping[str, str] = MappingProxyType({
    "json": "json", "jsonb": "jsonb", "varchar": "varchar", "character varying": "varchar",
    "char": "bpchar", "character": "bpchar", "bpchar": "bpchar", "name": "name",
    "regclass": "regclass", "regtype": "regtype", "regnamespace": "regnamespace",
})  # fmt: skip
_OIDS: Mapping[str, int] = MappingProxyType({
    "json": oids.JSON, "jsonb": oids.JSONB, "varchar": oids.VARCHAR, "bpchar": oids.BPCHAR,
    "name": oids.NAME, "regclass": oids.REGCLASS, "regtype": oids.REGTYPE,
    "regnamespace": oids.REGNAMESPACE, "void": oids.VOID,
})  # fmt: skip
_BY_NAME = frozenset({"regclass", "regtype", "regnamespace"})
"""Types for which only constants are packed. For columns, the rewrite looks up each row's name."""
_NAMED = frozenset({
    "current_user", "session_user", "user", "current_role", "current_schema", "current_catalog",
    "current_database ( )", "current_schema ( )",
})  # fmt: skip
"""Expressions that have the type ``name`` in PostgreSQL without a cast."""
_COMBINES = frozenset({"union", "intersect", "except", "distinct"})


def pack_casts(tokens: Sequence[Token]) -> list[Token]:
    """The statement with calls in place of the last casts of its columns.

    >>> from dpsql.serve.tokens import tokens as read
    >>> " ".join(t.text for t in pack_casts(read("SELECT '1'::jsonb AS a, b::text FROM t")))
    "SELECT pgx_as_jsonb ( '1' ) AS a , b :: text FROM t"
    >>> " ".join(t.text for t in pack_casts(read("SELECT a AT TIME ZONE 'b'::varchar")))
    "SELECT a AT TIME ZONE 'b' :: varchar"
    """
    if any(t.word in _COMBINES for t in tokens):
        return list(tokens)
    found, taken = list[Token](), 0
    for start, stop in select_items(tokens):
        end = start + body(tokens[start:stop])
        found += tokens[taken:start]
        found += _packed_item(tokens[start:end])
        taken = end
    return [*found, *tokens[taken:]]


def _packed_item(written: Sequence[Token]) -> Sequence[Token]:
    item = _with_colons(written)
    if " ".join(t.word for t in item) in _NAMED:
        return [_macro(item[0], "name"), _op(item[0], "("), *item, _op(item[0], ")")]
    cast = outer_cast(item)
    fits = cast and _is_primary(item[:cast])
    return (_call(item, cast) if cast and fits else ()) or written


def _is_primary(operand: Sequence[Token]) -> bool:
    """Whether a cast after these tokens applies to all of them.

    It does for a value, a name, a call, a bracketed expression, or a cast of one of these.
    """
    depth, after_value = 0, False
    for token in operand:
        depth -= token.text in (")", "]")
        if depth == 0:
            is_value = token.kind not in ("op", "macro")
            if (is_value and after_value) or not (is_value or token.text in _WITHIN):
                return False
            after_value = is_value
        depth += token.text in ("(", "[")
    return True


_WITHIN = frozenset({".", "::", "(", ")", "[", "]"})


def _with_colons(item: Sequence[Token]) -> Sequence[Token]:
    """The item with ``x::type`` in place of ``CAST(x AS type)``."""
    if [t.word for t in item[:2]] != ["cast", "("] or item[-1].text != ")":
        return item
    depth, split = 0, 0
    for at, token in enumerate(item):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and 1 < at < len(item) - 1:
            return item
        if depth == 1 and token.word == "as":
            split = at
    if not split:
        return item
    operand = item[2:split]
    inner = operand if len(operand) == 1 else [_op(item[0], "("), *operand, _op(item[0], ")")]
    return [*inner, _op(item[0], "::"), *item[split + 1 : -1]]


def _call(item: Sequence[Token], cast: int) -> Sequence[Token]:
    """A call of the type's macro; empty if such a cast is not packed."""
    wanted = [t for t in item[cast + 1 :] if t.name != "pg_catalog" and t.text != "."]
    words = " ".join(t.text.lower() for t in wanted if t.kind == "word")
    sizes = [t for t in wanted if t.kind == "number"]
    name, constant = _NAMES.get(words), cast == 1 and item[0].kind == "string"
    modifier = " ".join(t.text for t in wanted if t.kind != "word")
    if name is None or modifier not in ("", *(f"( {size.text} )" for size in sizes)):
        return ()
    if (name in _BY_NAME and not constant) or (words == "char" and not sizes):
        return ()
    operand = item if name in _BY_NAME else item[:cast]
    more = [_op(item[0], ","), *sizes] if sizes else []
    return [_macro(item[0], name), _op(item[0], "("), *operand, *more, _op(item[0], ")")]


def _macro(token: Token, name: str) -> Token:
    """A token of a kind that no client can write, since functions of clients must be listed."""
    return token._replace(kind="macro", text=f"pgx_as_{name}")


def _op(token: Token, text: str) -> Token:
    return token._replace(kind="op", text=text)


def packed_oid(kind: str) -> int | None:
    """The PostgreSQL type of a packed column; None for any other column."""
    return _OIDS.get(_packed(kind))


def _packed(kind: str) -> str:
    found = _PACKED.fullmatch(kind)
    return "" if found is None else found[1] or found[2]


def unpack_column(array: pa.ChunkedArray, kind: str) -> list[Any]:
    """The values of a packed column, as their type is written."""
    name = _packed(kind)
    read = _READ.get(name, _as_it_is)
    return [None if v is None else read(v, f"pgx_{name}") for v in array.to_pylist()]


def _as_it_is(value: Mapping[str, Any], key: str) -> Any:
    return value[key]


def _named(value: Mapping[str, Any], key: str) -> Any:
    return None if value[key] is None else {"oid": value[key], "name": value["name"]}


def _json(value: Mapping[str, Any], key: str) -> str | None:
    """The text as it was written. Refused if it is not JSON."""
    text: str | None = value[key]
    if text is not None:
        _read(text)
    return text


def _jsonb(value: Mapping[str, Any], key: str) -> str | None:
    """JSON as PostgreSQL writes jsonb: keys ordered by length, blanks after commas and colons."""
    text: str | None = value[key]
    try:
        return None if text is None else json.dumps(_ordered(_read(text)), ensure_ascii=False)
    except RecursionError:
        raise WireError(LIMIT, "this json is nested too deeply") from None


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda k: (len(k.encode()), k.encode()))
        return {k: _ordered(value[k]) for k in keys}
    return [_ordered(v) for v in value] if isinstance(value, list) else value


def _read(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except ValueError:
        raise WireError(BAD_TEXT, "invalid input syntax for type json") from None
    except RecursionError:
        raise WireError(LIMIT, "this json is nested too deeply") from None


def _no_number(_: str) -> Any:
    raise ValueError


_READ: Mapping[str, Callable[[Mapping[str, Any], str], Any]] = MappingProxyType({
    "json": _json, "jsonb": _jsonb, **dict.fromkeys(_BY_NAME, _named),
})  # fmt: skip
