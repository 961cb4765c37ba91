"""``python -m tests.adversary.pinned serve ..``: dpsql's command, in which nothing exact is released.

Every measured integer is replaced by the same number, and noise is made of the same bytes each time.
So two endpoints over neighbouring databases must say the same, to the last bit. Like ``seams.py`` this
looks inside dpsql.
"""

from __future__ import annotations

import hashlib
import runpy
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from dpsql.privacy.entropy import Entropy
from dpsql.release import noise as noising

MANY = 1_000_000
"""What every integer is where nothing exact may be released."""
Original = Callable[..., Any]


@contextmanager
def constant() -> Iterator[None]:
    """While this lasts every measurement has the same integers, and draws the same bytes."""
    drawing = threading.local()

    def raw(original: Original) -> Original:
        def pinned(self: Entropy, n: int) -> bytes:
            taken = getattr(drawing, "taken", None)
            if taken is None:
                return bytes(original(self, n))
            drawing.taken = taken + 1
            return hashlib.shake_128(b"pinned" + taken.to_bytes(8, "little")).digest(n)

        return pinned

    def noised(original: Original) -> Original:
        def same_each_time(tables: Iterator[pa.Table], part: Any, entropy: Any) -> Any:
            drawing.taken = 0
            try:
                return original(iter([_filled(pa.concat_tables(list(tables)))]), part, entropy)
            finally:
                drawing.taken = None

        return same_each_time

    with (
        patch.object(Entropy, "raw", raw(Entropy.raw)),
        patch.object(noising, "_noised", noised(noising._noised)),
    ):
        yield


def _filled(table: pa.Table) -> pa.Table:
    columns = [
        pa.chunked_array([pa.array([MANY] * table.num_rows).cast(column.type)])
        if not name.startswith("k") and _counts(column.type)
        else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _counts(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_decimal(kind)


if __name__ == "__main__":
    sys.argv[0] = "dpsql"
    with constant():
        runpy.run_module("dpsql", run_name="__main__", alter_sys=True)
