"""Rows of an engine as a table, part by part: each part is counted before the next is asked for."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from dpsql.execution import take

BATCH = 8_192
"""Rows of one part; engines make them a quarter of that at a time."""


def fetch(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """All rows of a statement, as long as the execution that asks for them may hold so many bytes.

    A result is not part of what an engine counts as its memory.
    """
    reader = relation.to_arrow_reader(BATCH)
    try:
        parts = []
        for part in reader:
            take(part.nbytes, part.num_rows, part.num_columns)
            parts.append(part)
        return pa.Table.from_batches(parts, reader.schema)
    finally:
        reader.close()  # what is not read to its end would keep the connection
