"""Reads COPY statements. Only COPY of a query TO STDOUT, as text, CSV or binary, is allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpsql.serve.pgwire import commands as c
from dpsql.serve.pgwire.cursor import Cursor
from dpsql.serve.pgwire.errors import BAD_VALUE, PRIVILEGE, WireError


def read_copy(cursor: Cursor, query: Callable[[Cursor], c.Query]) -> c.Copy:
    """COPY (query) TO STDOUT, and COPY table TO STDOUT as its short form."""
    bracket = cursor.skip("(")
    inner = query(cursor.within()) if bracket else _table(cursor)
    if not cursor.skip("to"):
        raise _not_out()
    if not cursor.skip("stdout"):
        raise _not_out()
    cursor.skip("with")
    copy = c.Copy(inner)
    if cursor.skip("("):
        copy = _options(copy, cursor.within())
    while cursor.remaining():
        copy = _option(copy, cursor)
    return copy


def _table(cursor: Cursor) -> c.Query:
    start = cursor.dotted_tokens()
    columns = "*"
    if cursor.skip("("):
        inside = cursor.inside()
        columns = cursor.text[inside[0].start : inside[-1].end] if inside else "*"
    text = f"SELECT {columns} FROM {start}"
    return c.Query(text)


def _not_out() -> WireError:
    return WireError(
        PRIVILEGE,
        "only COPY (query) TO STDOUT is allowed: dpsql answers queries and changes nothing",
    )


def _options(copy: c.Copy, cursor: Cursor) -> c.Copy:
    while cursor.remaining():
        copy = _option(copy, cursor)
        if cursor.remaining():
            cursor.expect(",")
    return copy


def _option(copy: c.Copy, cursor: Cursor) -> c.Copy:
    word = cursor.next().word
    if word in ("csv", "binary", "text"):
        return replace(copy, format=word)
    if word == "format":
        return replace(copy, format=_format(cursor))
    if word == "header":
        off = cursor.skip("false", "off")
        cursor.skip("true", "on", "match")
        return replace(copy, header=not off)
    if word in ("delimiter", "null", "quote", "escape", "encoding"):
        cursor.skip("as")
        return _with_text(copy, word, cursor.constant() or "")
    if word in ("force_quote", "force"):
        cursor.rest()
        return replace(copy, force_quote=True)
    raise WireError("42601", f'option "{word}" not recognized')


def _format(cursor: Cursor) -> str:
    name = cursor.next().value.lower()
    if name not in ("text", "csv", "binary"):
        raise WireError(BAD_VALUE, f'COPY format "{name}" not recognized')
    return name


def _with_text(copy: c.Copy, option: str, text: str) -> c.Copy:
    if option == "null":
        return replace(copy, null=text)
    if option in ("escape", "encoding"):
        return copy
    if len(text.encode()) != 1:
        raise WireError(UNFIT, f"COPY {option} must be a single one-byte character")
    return replace(copy, delimiter=text) if option == "delimiter" else replace(copy, quote=text)


UNFIT = "0A000"
