"""What a statement does beyond its rows, it does to the session that asks."""

from __future__ import annotations

import threading

import pytest

from dpsql.engines.allowlist import Listing
from dpsql.engines.catalog_db import CatalogDatabase, CatalogFailed

NONE = frozenset[str]()
LISTING = Listing(
    frozenset(), frozenset({"pgx_set", "pgx_stop"}), frozenset({"generate_series"}), NONE,
    frozenset({"varchar"}),
)  # fmt: skip


class Session:
    def __init__(self) -> None:
        self.stopped, self.kept = set[int](), set[str]()

    def stop(self, process: int, *, ends: bool) -> bool:
        self.stopped.add(process)
        return ends

    def set(self, name: str, value: str, *, local: bool) -> str:
        self.kept.add(value)
        return f"{name} {local}"


@pytest.fixture(scope="module")
def database() -> CatalogDatabase:
    return CatalogDatabase((), {}, (), LISTING)


def test_statements_that_run_at_once_have_their_own_effects(database: CatalogDatabase) -> None:
    sessions = [Session() for _ in range(8)]
    together = threading.Barrier(len(sessions))

    def ask(number: int) -> None:
        together.wait()
        for _ in range(3):
            database.run(
                f"SELECT pgx_set('a', '{number}', false), pgx_stop({number}, true)"
                " FROM generate_series(1, 20000)",
                effects=sessions[number],
            )

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(len(sessions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [s.kept for s in sessions] == [{str(n)} for n in range(len(sessions))]
    assert [s.stopped for s in sessions] == [{n} for n in range(len(sessions))]


def test_without_a_session_nothing_is_done(database: CatalogDatabase) -> None:
    session = Session()
    database.run("SELECT pgx_stop(1, true)", effects=session)
    found = database.run("SELECT pgx_stop(2, true), pgx_set('a', 'b', false)")
    assert found.table.to_pylist() == [
        dict(zip(found.table.column_names, (False, "b"), strict=True))
    ]
    assert session.stopped == {1}


def test_what_is_not_listed_does_not_reach_the_engine(database: CatalogDatabase) -> None:
    for sql, kind, name in (
        ("SELECT glob('*')", "function", "glob"),
        ("SELECT * FROM 'x.csv'", "relation", "x.csv"),
        ("SELECT 1; SELECT 2", "syntax", "only one SELECT is answered"),
    ):
        with pytest.raises(CatalogFailed) as caught:
            database.run(sql)
        assert (caught.value.kind, caught.value.words) == (kind, name)
