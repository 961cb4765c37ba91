"""The engine in a process for catalog queries: what it answers, and how much of it."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest
from support.catalogs import RecordedEffects

from dpsql.engines.catalog.content import Bounds, CatalogFailed, Content
from dpsql.engines.catalog.database import MOST_EFFECTS, CatalogDatabase
from dpsql.engines.duckdb.allowlist import OPERATORS, Listing

NONE = frozenset[str]()
LISTING = Listing(
    frozenset(), OPERATORS | {"pgx_set", "pgx_stop", "array_agg", "replace", "struct_pack"},
    frozenset({"generate_series"}), NONE, frozenset({"varchar"}),
)  # fmt: skip


@pytest.fixture(scope="module")
def database() -> CatalogDatabase:
    return CatalogDatabase(Content((), {}, (), LISTING), 100_000_000)


def run(database: CatalogDatabase, sql: str, **more: Any) -> list[tuple[object, ...]]:
    sink = io.BytesIO()
    columns = database.run(sink, sql, **more)
    table = pa.ipc.open_stream(sink.getvalue()).read_all()
    assert [name for name, _ in columns] == table.column_names
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_without_a_session_nothing_is_done(database: CatalogDatabase) -> None:
    session = RecordedEffects()
    assert run(database, "SELECT pgx_stop(1, true)", effects=session) == [(True,)]
    found = run(database, "SELECT pgx_stop(2, true), pgx_set('a', 'b', false)")
    assert found == [(False, "b")]
    assert session.stopped == {1}


def test_what_is_not_listed_does_not_reach_the_engine(database: CatalogDatabase) -> None:
    for sql, kind, name in (
        ("SELECT glob('*')", "function", "glob"),
        ("SELECT * FROM 'x.csv'", "relation", "x.csv"),
        ("SELECT 1; SELECT 2", "syntax", "only one SELECT is answered"),
    ):
        with pytest.raises(CatalogFailed) as caught:
            run(database, sql)
        assert (caught.value.kind, caught.value.words) == (kind, name)


@pytest.mark.parametrize(
    ("bounds", "fits", "too_large"),
    [
        (Bounds(bytes=100_000), "x FROM generate_series(1, 9000)", "x FROM generate_series(1, 20000)"),
        (Bounds(rows=10_000), "NULL FROM generate_series(1, 10000)", "NULL FROM generate_series(1, 10001)"),
        (Bounds(value=1_000), "replace('a', 'a', 'b')", f"replace('a', 'a', '{'b' * 1001}')"),
        (Bounds(value=1_000), "['a', NULL]", f"[{{'x': '{'b' * 1001}'}}]"),
        (Bounds(elements=100), "array_agg(x) FROM generate_series(1, 90)", "array_agg(x) FROM generate_series(1, 101)"),
        (Bounds(elements=100), "1.5 FROM generate_series(1, 90)", "1.5 FROM generate_series(1, 101)"),
        (Bounds(elements=100), "[[1, 2], [3]] FROM generate_series(1, 9)", "[[1, 2], [3]] FROM generate_series(1, 90)"),
        (Bounds(elements=100), "{'a': 1, 'b': 2} FROM generate_series(1, 9)", "{'a': 1, 'b': 2} FROM generate_series(1, 50)"),
    ],
)  # fmt: skip
def test_an_answer_has_so_much_of_each(
    database: CatalogDatabase, bounds: Bounds, fits: str, too_large: str
) -> None:
    named = ("SELECT " + sql + (" s(x)" if "FROM" in sql else "") for sql in (fits, too_large))
    fits, too_large = named
    assert run(database, fits, bounds=bounds)
    with pytest.raises(CatalogFailed, match="an answer has at most") as caught:
        run(database, too_large, bounds=bounds)
    assert caught.value.kind == "large"
    assert run(database, too_large)


def test_a_statement_asks_its_parent_only_so_often(database: CatalogDatabase) -> None:
    session = RecordedEffects()
    calls = "SELECT pgx_stop(x, true) FROM generate_series(1, {}) s(x)"
    run(database, calls.format(MOST_EFFECTS), effects=session)
    assert len(session.stopped) == MOST_EFFECTS
    with pytest.raises(CatalogFailed, match="at most"):
        run(database, calls.format(MOST_EFFECTS + 1), effects=session)
    assert run(database, "SELECT 1", effects=session)
