"""Answers for programs: CSV, JSON and Parquet, as bytes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dpsql.service import Reply, plain
from dpsql.service.reply import with_interval_columns


def encode_reply(reply: Reply, form: str, *, intervals: bool) -> bytes:
    """The answer in a format. JSON always has intervals; others have them as columns if asked."""
    if form == "json":
        return (plain.to_json(reply) + "\n").encode()
    table = plain.with_distinct_names(with_interval_columns(reply) if intervals else reply)
    sink = pa.BufferOutputStream()
    if form == "csv":
        pa.csv.write_csv(_flat(table), sink)
    else:
        pa.parquet.write_table(table, sink)
    body: bytes = sink.getvalue().to_pybytes()
    return body


def _flat(table: pa.Table) -> pa.Table:
    """The table with lists as text, since CSV has no lists."""
    for position, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            values = table.column(position).to_pylist()
            texts = [None if v is None else plain.write_list(v) for v in values]
            table = table.set_column(position, field.name, pa.array(texts, pa.string()))
    return table
