"""Sizes that are counted are near those that Python's own tracer sees."""

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pytest

from dpsql.memory import sizes
from dpsql.memory.sizes import UNKNOWN, size_of, table_size
from dpsql.policy.types import Kind
from dpsql.serve.pgwire.asking import Description
from dpsql.serve.pgwire.replies import WireColumn
from dpsql.serve.tokens import tokens


@dataclass(frozen=True, slots=True)
class Pair:
    one: object
    other: object


def _traced(make: Callable[[], object]) -> tuple[object, int]:
    make()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        made = make()
        gc.collect()
        return made, tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ["x" * 100_000],
        lambda: [str(i) * 3 for i in range(2_000)],
        lambda: {f"k{i}": (i * 1_000_003, float(i)) for i in range(2_000)},
        lambda: [Pair(str(i), [i]) for i in range(2_000)],
        lambda: tokens("SELECT a + 1234 AS b, 'text' FROM t WHERE c = d; " * 200),
        lambda: [Description(tuple(WireColumn(f"c{i}{j}", 20, 8) for j in range(5)), (20, i)) for i in range(500)],
    ],
    ids=["text", "texts", "mapping", "objects", "tokens", "descriptions"],
)  # fmt: skip
def test_python_objects_are_counted_within_a_quarter(make: Callable[[], object]) -> None:
    made, traced = _traced(make)
    assert traced * 0.75 <= size_of(made) <= traced * 1.5


def test_arrow_tables_count_their_values() -> None:
    before = pa.total_allocated_bytes()
    table = pa.table({"a": pa.array(range(200_000)), "b": pa.array(["some text"] * 200_000)})
    allocated = pa.total_allocated_bytes() - before
    assert allocated * 0.5 <= size_of(table) <= allocated * 1.5
    assert size_of([table, table]) == pytest.approx(table_size(table), rel=0.01)
    assert size_of(table.column("a")) >= 1_600_000
    assert size_of(table.column("a").chunk(0)) >= 1_600_000
    assert size_of(pa.py_buffer(bytes(5_000))) >= 5_000


def test_small_tables_count_what_they_are_kept_in() -> None:
    made, traced = _traced(lambda: [pa.table({"a": [i], "b": ["x"]}) for i in range(300)])
    assert size_of(made) >= traced


def test_what_there_is_one_of_is_not_counted() -> None:
    assert size_of(Kind.TEXT, int, print, test_small_tables_count_what_they_are_kept_in, None) == 0


def test_what_has_too_many_objects_is_of_unknown_size(monkeypatch: pytest.MonkeyPatch) -> None:
    assert size_of([object() for _ in range(50)]) < 10_000
    monkeypatch.setattr(sizes, "MOST_OBJECTS", 50)
    assert size_of([object() for _ in range(50)]) == UNKNOWN
