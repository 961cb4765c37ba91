"""Releases as bytes: what is read is what was written, however large."""

import pyarrow as pa
import pytest

from dpsql.reuse.encoding import LARGE, StoredTable, from_bytes, to_bytes


def _table(rows: int) -> pa.Table:
    return pa.table({"k0": [f"key {i}" for i in range(rows)], "p0": [i % 7 for i in range(rows)]})


@pytest.mark.parametrize("sizes", [(), (0,), (3,), (50_000,), (2, 50_000, 1)])
def test_tables_come_back_as_they_were(sizes: tuple[int, ...]) -> None:
    stored = [StoredTable(_table(rows), (None,)) for rows in sizes]
    found = from_bytes(to_bytes(stored))
    assert [f.table for f in found] == [s.table for s in stored]
    assert all(f.noise == (None,) for f in found)


def test_large_tables_are_packed_and_small_ones_are_not() -> None:
    small, large = _table(100), _table(100_000)
    assert small.nbytes < LARGE < large.nbytes
    assert len(to_bytes([StoredTable(large, ())])) < large.nbytes / 4
    assert len(to_bytes([StoredTable(small, ())])) > small.nbytes
