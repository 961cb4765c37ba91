"""Pieces of a release as bytes, for the ledger's store. Only noised values are ever written."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from dpsql.privacy.mechanisms.noise_sum import NoiseSum, from_plain, to_plain


@dataclass(frozen=True, slots=True)
class StoredTable:
    """Released columns of one measurement behind their keys, and the noise that each has.

    Numbers that were merged are kept as they came out, and rounded when they are shown.
    """

    table: pa.Table
    noise: tuple[NoiseSum | None, ...]


def to_bytes(tables: Iterable[StoredTable]) -> bytes:
    """Arrow streams, one after the other, behind a line about where each begins and its noise."""
    head, body = [], b""
    for stored in tables:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, stored.table.schema) as stream:
            stream.write_table(stored.table)
        data = sink.getvalue()
        noise = [None if n is None else to_plain(n) for n in stored.noise]
        head.append([len(data), noise])
        body += data
    return json.dumps(head).encode() + b"\n" + body


def from_bytes(data: bytes) -> tuple[StoredTable, ...]:
    """What ``to_bytes`` wrote."""
    head, _, rest = data.partition(b"\n")
    found, start = [], 0
    for length, noise in json.loads(head):
        with pa.ipc.open_stream(rest[start : start + length]) as stream:
            table = stream.read_all()
        start += length
        laws = tuple(None if plain is None else from_plain(plain) for plain in noise)
        found.append(StoredTable(table, laws))
    return tuple(found)
