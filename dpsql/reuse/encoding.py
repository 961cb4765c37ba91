"""Pieces of a release as bytes, for the ledger's store. Only noised values are ever written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from dpsql.privacy.mechanisms.noise_sum import NoiseSum, from_plain, to_plain


@dataclass(frozen=True, slots=True)
class StoredTable:
    """The keys and some released columns of one measurement, and the noise of each column.

    Merged numbers are stored unrounded, and rounded when they are shown.
    """

    table: pa.Table
    noise: tuple[NoiseSum | None, ...]


LARGE = 1 << 16
"""Tables above this many bytes are compressed: a million noised counts to an eighth."""


def to_bytes(tables: Iterable[StoredTable]) -> bytes:
    """Arrow streams, one after the other, after a line with the length and the noise of each."""
    head, parts = [], []
    for stored in tables:
        data = _stream(stored.table)
        noise = [None if n is None else to_plain(n) for n in stored.noise]
        head.append([len(data), noise])
        parts.append(data)
    return b"".join([json.dumps(head).encode(), b"\n", *parts])


def _stream(table: pa.Table) -> pa.Buffer:
    packed = pa.ipc.IpcWriteOptions(compression="zstd" if table.nbytes > LARGE else None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=packed) as stream:
        stream.write_table(table)
    return sink.getvalue()


def from_bytes(data: bytes) -> tuple[StoredTable, ...]:
    """Read the tables that ``to_bytes`` wrote."""
    start = data.index(b"\n") + 1
    found, whole = [], memoryview(data)
    for length, noise in json.loads(data[:start]):
        with pa.ipc.open_stream(pa.py_buffer(whole[start : start + length])) as stream:
            table = stream.read_all()
        start += length
        laws = tuple(None if plain is None else from_plain(plain) for plain in noise)
        found.append(StoredTable(table, laws))
    return tuple(found)
