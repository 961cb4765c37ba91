"""COPY TO STDOUT: rows as lines of text, as CSV, or as PostgreSQL's binary file."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from dpsql.serve.pgwire.asking import Answer
from dpsql.serve.pgwire.commands import Copy
from dpsql.serve.pgwire.replies import WireColumn, copy_out, message
from dpsql.serve.pgwire.rows import column_bytes
from dpsql.serve.pgwire.values import encoder, field

_BINARY_HEAD = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
_ESCAPES = (
    (b"\\", b"\\\\"), (b"\t", b"\\t"), (b"\n", b"\\n"), (b"\r", b"\\r"),
    (b"\b", b"\\b"), (b"\f", b"\\f"), (b"\v", b"\\v"),
)  # fmt: skip


def copied(copy: Copy, answer: Answer) -> Iterator[bytes]:
    """The whole conversation of one COPY but its end, in pieces."""
    yield copy_out(len(answer.columns), int(copy.format == "binary"))
    if copy.format == "binary":
        yield from _binary(answer)
        return
    line = _csv(copy) if copy.format == "csv" else _text(copy)
    if copy.header:
        head = _csv(replace(copy, force_quote=False)) if copy.format == "csv" else line
        yield message(b"d", head([c.name.encode() for c in answer.columns]))
    for row in _texts(answer.table, answer.columns):
        yield message(b"d", line(row))


def _texts(table: pa.Table, columns: Sequence[WireColumn]) -> Iterator[tuple[bytes | None, ...]]:
    cells = [
        column_bytes(table.column(i).combine_chunks(), column.oid, 0).to_pylist()
        for i, column in enumerate(columns)
    ]
    return zip(*cells, strict=True) if cells else iter([()] * table.num_rows)


def _binary(answer: Answer) -> Iterator[bytes]:
    """The header travels with the first row, as PostgreSQL sends it."""
    writers = [encoder(c.oid, 1) for c in answer.columns]
    cells = [
        [field(v, write) for v in answer.table.column(i).to_pylist()]
        for i, write in enumerate(writers)
    ]
    rows = zip(*cells, strict=True) if cells else iter([()] * answer.count)
    head = _BINARY_HEAD
    for row in rows:
        yield message(b"d", head + struct.pack("!h", len(writers)) + b"".join(row))
        head = b""
    yield message(b"d", head + struct.pack("!h", -1))


def _text(copy: Copy) -> Callable[[Sequence[bytes | None]], bytes]:
    delimiter = (copy.delimiter or "\t").encode()
    null = (r"\N" if copy.null is None else copy.null).encode()
    pairs = [*_ESCAPES, *([(delimiter, b"\\" + delimiter)] if delimiter != b"\t" else [])]

    def write(values: Sequence[bytes | None]) -> bytes:
        return delimiter.join(null if v is None else _escaped(v, pairs) for v in values) + b"\n"

    return write


def _escaped(value: bytes, pairs: Sequence[tuple[bytes, bytes]]) -> bytes:
    for plain, escaped in pairs:
        value = value.replace(plain, escaped)
    return value


def _csv(copy: Copy) -> Callable[[Sequence[bytes | None]], bytes]:
    delimiter, quote = (copy.delimiter or ",").encode(), copy.quote.encode()
    null = (copy.null or "").encode()
    special = {*delimiter, *quote, *b"\r\n"}

    def one(value: bytes | None) -> bytes:
        if value is None:
            return null
        if copy.force_quote or value in (null, b"\\.") or any(b in special for b in value):
            return quote + value.replace(quote, quote * 2) + quote
        return value

    def write(values: Sequence[bytes | None]) -> bytes:
        return delimiter.join(map(one, values)) + b"\n"

    return write
