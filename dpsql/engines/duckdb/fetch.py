"""Rows of an engine as a table. Each part is counted in the memory before the next is read."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from dpsql.execution import take

BATCH = 8_192
"""The rows of one part. Engines compute a quarter of that at a time."""


def fetch(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """All rows of a statement. Raises if the execution may not hold so many bytes.

    An engine does not count results in its memory limit.
    """
    reader = relation.to_arrow_reader(BATCH)
    try:
        parts = []
        for part in reader:
            take(part.nbytes, part.num_rows, part.num_columns)
            parts.append(part)
        return pa.Table.from_batches(parts, reader.schema)
    finally:
        reader.close()  # a result that is not read to its end would keep the connection
