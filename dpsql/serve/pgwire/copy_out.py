"""Encodes rows for COPY TO STDOUT: as lines of text, as CSV, or as PostgreSQL's binary file.

The encoding works on whole columns.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsql.serve.pgwire.commands import Copy
from dpsql.serve.pgwire.replies import WireColumn, message
from dpsql.serve.pgwire.rows import column_bytes, data_rows, frame_rows

_BINARY_HEAD = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
_ESCAPES = (
    ("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"), ("\b", "\\b"), ("\f", "\\f"),
    ("\v", "\\v"),
)  # fmt: skip


def encode_copied_rows(
    copy: Copy, columns: Sequence[WireColumn], table: pa.Table, start: int, stop: int
) -> bytes:
    """Rows ``start`` to ``stop`` of a COPY, with the header or the trailer if they are due."""
    part, last = table.slice(start, stop - start), stop == table.num_rows
    if copy.format == "binary":
        return _binary(columns, part, first=start == 0, last=last)
    head = b""
    if copy.header and start == 0:
        plain = replace(copy, force_quote=False)
        names = pa.table(
            [pa.array([c.name]) for c in columns], [str(i) for i in range(len(columns))]
        )
        head = _lines(plain, [c._replace(oid=_TEXT) for c in columns], names)
    return head + _lines(copy, columns, part)


_TEXT = 25


def _binary(columns: Sequence[WireColumn], part: pa.Table, *, first: bool, last: bool) -> bytes:
    """Rows of the binary file, which are laid out as DataRow messages are.

    The header of the file is sent in one message with the first row.
    """
    formats = [1] * len(columns)
    pieces = [data_rows(part, columns, formats, kind=b"d")]
    if first:
        one = data_rows(part.slice(0, 1), columns, formats, kind=b"d")[5:]
        rest = data_rows(part.slice(1), columns, formats, kind=b"d")
        pieces = [message(b"d", _BINARY_HEAD + one) if one else b"", rest]
    if last:
        empty = first and not part.num_rows
        pieces.append(message(b"d", (_BINARY_HEAD if empty else b"") + struct.pack("!h", -1)))
    return b"".join(pieces)


def _lines(copy: Copy, columns: Sequence[WireColumn], part: pa.Table) -> bytes:
    """One CopyData message for each row."""
    if not columns:
        return b"".join([message(b"d", b"\n")] * part.num_rows)
    write = _csv(copy, alone=len(columns) == 1) if copy.format == "csv" else _text(copy)
    cells = [
        write(column_bytes(part.column(i).combine_chunks(), c.oid, 0).cast(pa.large_string()))
        for i, c in enumerate(columns)
    ]
    delimiter = copy.delimiter or ("," if copy.format == "csv" else "\t")
    joined = pc.binary_join_element_wise(*cells, _large(delimiter))
    lines = pc.binary_join_element_wise(joined, *map(_large, ("\n", ""))).cast(pa.large_binary())
    return frame_rows(b"d", np.asarray(pc.binary_length(lines), np.int32), [lines])


def _large(text: str | pa.Array) -> pa.Scalar | pa.Array:
    return pa.scalar(text, pa.large_string()) if isinstance(text, str) else text


def _text(copy: Copy) -> Callable[[pa.Array], pa.Array]:
    null = r"\N" if copy.null is None else copy.null
    special = copy.delimiter
    pairs = [*_ESCAPES, *([(special, "\\" + special)] if special and special != "\t" else [])]

    def write(values: pa.Array) -> pa.Array:
        for plain, escaped in pairs:
            values = pc.replace_substring(values, plain, escaped)
        return pc.fill_null(values, null)

    return write


def _csv(copy: Copy, *, alone: bool) -> Callable[[pa.Array], pa.Array]:
    """A function that quotes values where needed; also ``\\.``, if it is ``alone`` on its line."""
    delimiter, quote, null = copy.delimiter or ",", copy.quote, copy.null or ""

    def write(values: pa.Array) -> pa.Array:
        doubled = pc.replace_substring(values, quote, quote * 2)
        quoted = pc.binary_join_element_wise(*map(_large, (quote, doubled, quote, "")))
        if copy.force_quote:
            return pc.fill_null(quoted, null)
        needed = pc.is_in(values, pa.array([null, *(["\\."] if alone else [])], values.type))
        for special in (delimiter, quote, "\r", "\n"):
            needed = pc.or_(needed, pc.match_substring(values, special))
        return pc.fill_null(pc.if_else(needed, quoted, values), null)

    return write
