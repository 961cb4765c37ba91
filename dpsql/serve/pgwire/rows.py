"""Encodes Arrow tables as DataRow messages: few rows value by value, many rows by columns."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpsql.serve.pgwire import oids
from dpsql.serve.pgwire.replies import WireColumn
from dpsql.serve.pgwire.values import encoder, field, number_text

FEW = 256
CHUNK = 16_384
_DAYS, _MICROSECONDS = 10_957, 946_684_800_000_000
_Bytes = npt.NDArray[np.uint8]


def data_rows(
    table: pa.Table, columns: Sequence[WireColumn], formats: Sequence[int], kind: bytes = b"D"
) -> bytes:
    """The rows of a table as one DataRow message each, or as another kind of the same layout."""
    if table.num_rows <= FEW:
        return _few(table, columns, formats, kind)
    parts = [
        _many(table.slice(start, CHUNK), columns, formats, kind)
        for start in range(0, table.num_rows, CHUNK)
    ]
    return b"".join(parts)


def _few(
    table: pa.Table, columns: Sequence[WireColumn], formats: Sequence[int], kind: bytes
) -> bytes:
    count = struct.pack("!H", len(columns))
    fields = []
    for i, (column, code) in enumerate(zip(columns, formats, strict=True)):
        write = encoder(column.oid, code)
        fields.append([field(v, write) for v in table.column(i).to_pylist()])
    rows = zip(*fields, strict=True) if fields else [()] * table.num_rows
    bodies = [count + b"".join(row) for row in rows]
    return b"".join(kind + struct.pack("!i", len(body) + 4) + body for body in bodies)


def _many(
    table: pa.Table, columns: Sequence[WireColumn], formats: Sequence[int], kind: bytes
) -> bytes:
    """The rows as messages, with columns of headers, lengths and values joined in one pass."""
    count = table.num_rows
    total = np.full(count, 2, np.int32)
    width = np.full((count, 2), divmod(len(columns), 256), np.uint8)
    pieces: list[pa.Array] = [_fixed(width)]
    for i, (column, code) in enumerate(zip(columns, formats, strict=True)):
        raw = column_bytes(table.column(i).combine_chunks(), column.oid, code)
        lengths = pc.binary_length(raw)
        total += 4 + np.asarray(pc.fill_null(lengths, 0), np.int32)
        pieces += [_fixed(_big_endian(np.asarray(pc.fill_null(lengths, -1), np.int32)))]
        pieces += [pc.fill_null(raw, b"")]
    return frame_rows(kind, total, pieces)


def frame_rows(kind: bytes, lengths: npt.NDArray[np.int32], pieces: Sequence[pa.Array]) -> bytes:
    """One message for each row of the pieces; ``lengths`` are the bytes of all pieces of a row."""
    head = np.empty((len(lengths), 5), np.uint8)
    head[:, 0] = kind[0]
    head[:, 1:] = _big_endian(lengths + 4)
    joined = pc.binary_join_element_wise(_fixed(head), *pieces, pa.scalar(b"", pa.large_binary()))
    return b"".join(joined.to_pylist()) if joined.offset else _data(joined)


def _data(array: pa.Array) -> bytes:
    start, end = np.frombuffer(array.buffers()[1], np.int64)[[0, len(array)]]
    return bytes(memoryview(array.buffers()[2])[start:end])


def _big_endian(values: npt.NDArray[np.int32]) -> _Bytes:
    return np.ascontiguousarray(values.astype(">i4")).view(np.uint8).reshape(-1, 4)


def _fixed(matrix: _Bytes) -> pa.Array:
    """An array that has one binary value for each row of bytes."""
    count, width = matrix.shape
    buffer = pa.py_buffer(np.ascontiguousarray(matrix))
    array = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, buffer])
    return array.cast(pa.binary()).cast(pa.large_binary())


def column_bytes(array: pa.Array, oid: int, code: int) -> pa.Array:
    """The values of a column in text or binary format. NULL stays NULL."""
    fast = _binary(array, oid) if code else _text(array, oid)
    if fast is None:
        write = encoder(oid, code)
        values = [None if v is None else write(v) for v in array.to_pylist()]
        return pa.array(values, pa.large_binary())
    return fast if fast.type == pa.large_binary() else fast.cast(pa.large_binary())


def _text(array: pa.Array, oid: int) -> pa.Array | None:
    if pa.types.is_string(array.type):
        return array.cast(pa.binary())
    if oid in (oids.INT8, oids.INT4, oids.INT2, oids.OID) or oid == oids.DATE:
        return array.cast(pa.string()).cast(pa.binary())
    if oid == oids.BOOL:
        return pc.if_else(array, b"t", b"f")
    if oid == oids.FLOAT8 and pa.types.is_float64(array.type):
        return _floats(array)
    if oid == oids.TIMESTAMP and pa.types.is_timestamp(array.type):
        whole = array.cast(pa.timestamp("us")).cast(pa.string())
        return pc.utf8_rtrim(pc.utf8_rtrim(whole, "0"), ".") if _after_1(array) else None
    return None


def _floats(array: pa.Array) -> pa.Array:
    """Numbers as PostgreSQL writes them. Arrow writes those of moderate size in the same way."""
    size = pc.abs(array)
    plain = pc.or_(pc.and_(pc.greater_equal(size, 1e-4), pc.less(size, 1e9)), pc.equal(size, 0.0))
    texts = array.cast(pa.string())
    odd = np.flatnonzero(~np.asarray(pc.fill_null(plain, fill_value=True)))
    if not len(odd):
        return texts
    where = pc.invert(pc.fill_null(plain, fill_value=True))
    others = [number_text(v).decode() for v in array.take(pa.array(odd)).to_pylist()]
    return pc.replace_with_mask(texts, where, pa.array(others, pa.string()))


def _after_1(array: pa.Array) -> bool:
    """Whether all years are from 1 to 9999, which Arrow and PostgreSQL write alike."""
    ends = pc.min_max(pc.year(array)).as_py()
    return ends["min"] is None or (ends["min"] >= 1 and ends["max"] <= 9999)


_STORED = {
    oids.INT2: ">i2", oids.INT4: ">i4", oids.INT8: ">i8", oids.FLOAT8: ">f8",
    oids.DATE: ">i4", oids.TIMESTAMP: ">i8",
}  # fmt: skip


def _binary(array: pa.Array, oid: int) -> pa.Array | None:
    if oid not in _STORED:
        return _text(array, oid) if pa.types.is_string(array.type) and oid == oids.TEXT else None
    plain = array
    if oid == oids.DATE:
        plain = array.cast(pa.date32()).cast(pa.int32())
    elif oid == oids.TIMESTAMP:
        plain = array.cast(pa.timestamp("us")).cast(pa.int64())
    numbers = np.asarray(pc.fill_null(plain, 0))
    numbers = numbers - {oids.DATE: _DAYS, oids.TIMESTAMP: _MICROSECONDS}.get(oid, 0)
    raw = np.ascontiguousarray(numbers.astype(_STORED[oid])).view(np.uint8)
    joined = _fixed(raw.reshape(len(array), -1))
    return pc.if_else(pc.is_null(array), pa.scalar(None, pa.large_binary()), joined)
