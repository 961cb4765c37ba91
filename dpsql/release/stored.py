"""Releases as bytes, for the ledger's store of answers. Only noised values are ever written."""

from __future__ import annotations

import io
import json

import pyarrow as pa

from dpsql.plan.priced import PricedPlan
from dpsql.release.rows import NoisyRows, schema


def to_bytes(tables: tuple[NoisyRows, ...]) -> bytes:
    """Arrow streams, one after the other, behind a line that says where each begins."""
    chunks = []
    for rows in tables:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, rows.table.schema) as stream:
            stream.write_table(rows.table)
        chunks.append((rows.name, sink.getvalue()))
    head = json.dumps([[name, len(data)] for name, data in chunks]).encode() + b"\n"
    return head + b"".join(data for _, data in chunks)


def recalled(data: bytes, priced: PricedPlan) -> tuple[NoisyRows, ...]:
    """The stored tables of an equal plan, under the names that this plan gives its columns."""
    head, _, rest = data.partition(b"\n")
    found, start = [], 0
    for part, (_, length) in zip(priced.parts, json.loads(head), strict=True):
        with pa.ipc.open_stream(rest[start : start + length]) as stream:
            table = stream.read_all()
        start += length
        measurement = part.measurement
        names = schema(measurement.key_fields + measurement.columns).names
        found.append(NoisyRows(measurement.name, table.rename_columns(names)))
    return tuple(found)
