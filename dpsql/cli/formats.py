"""Answers for programs: CSV, JSON and Parquet, as bytes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dpsql.service import Reply, plain
from dpsql.service.session import with_interval_columns


def encoded(reply: Reply, form: str, *, intervals: bool) -> bytes:
    """The answer in a form. JSON always has its intervals, the others as columns if wanted."""
    if form == "json":
        return (plain.to_json(reply) + "\n").encode()
    table = plain.named(with_interval_columns(reply) if intervals else reply)
    sink = pa.BufferOutputStream()
    if form == "csv":
        pa.csv.write_csv(table, sink)
    else:
        pa.parquet.write_table(table, sink)
    body: bytes = sink.getvalue().to_pybytes()
    return body
