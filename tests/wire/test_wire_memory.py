"""What clients can make the endpoint hold, and what it does twice: both are bounded."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from endpoint import Endpoint

from dpsql.engines import catalog_db
from dpsql.engines.catalog_db import CatalogDatabase
from dpsql.serve.memory import Held
from dpsql.serve.pgwire import portals, room, session


@pytest.fixture
def client(shop: Endpoint) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shop.dsn(), autocommit=True) as found:
        yield found


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that the catalog's engine is given."""
    given: list[str] = []
    run = CatalogDatabase.run

    def noted(self: CatalogDatabase, sql: str, *more: object) -> object:
        given.append(sql)
        return run(self, sql, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(CatalogDatabase, "run", noted)
    return given


def test_what_is_described_and_then_run_is_asked_once(
    client: psycopg.Connection, runs: list[str]
) -> None:
    assert client.execute("SELECT %s::int4 + 40100", (7,)).fetchone() == (40107,)
    assert len(runs) == 1
    assert client.execute("SELECT %s::int4 + 40100", (7,)).fetchone() == (40107,)
    assert len(runs) == 1


def test_a_text_is_read_as_its_place_wants_it(client: psycopg.Connection, runs: list[str]) -> None:
    sql = "SELECT %s + 40200 AS a, %s AS b"
    assert client.execute(sql, ("3", "x")).fetchone() == (40203, "x")
    learned = len(runs)
    assert client.execute(sql, ("4", "y")).fetchone() == (40204, "y")
    assert len(runs) == learned + 1
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        client.execute(sql, ("three", "x"))
    with pytest.raises(psycopg.errors.UndefinedColumn):
        client.execute("SELECT %s + nowhere", ("3",))


def test_an_answer_is_so_large(client: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_db, "LARGEST_ANSWER", 1_000_000)
    fits = client.execute("SELECT x FROM generate_series(1, 50000) AS s(x)").fetchall()
    assert len(fits) == 50_000
    for rows in ("300000", "100000000000"):
        with pytest.raises(psycopg.errors.ProgramLimitExceeded):
            client.execute(f"SELECT x FROM generate_series(1, {rows}) AS s(x)")
    assert client.execute("SELECT 15").fetchone() == (15,)


def test_what_goes_wrong_after_many_rows_has_its_class(client: psycopg.Connection) -> None:
    wrong = "CASE WHEN x = 150000 THEN CAST('a' || x AS integer) ELSE x END"
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        client.execute(f"SELECT {wrong} FROM generate_series(1, 200000) AS s(x)")


def test_open_cursors_hold_so_much(
    client: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portals, "MOST_BYTES", 20)
    client.execute("DECLARE a CURSOR WITH HOLD FOR SELECT 1 AS one, 'a text' AS words")
    client.execute("DECLARE b CURSOR WITH HOLD FOR SELECT 2 AS two")
    assert client.execute("FETCH a").fetchone() == (1, "a text")
    monkeypatch.setattr(portals, "MOST_BYTES", 1)
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        client.execute("FETCH b")
    client.execute("CLOSE a")
    assert client.execute("FETCH b").fetchone() == (2,)


def test_open_cursors_of_all_sessions_hold_so_much(
    client: psycopg.Connection, shop: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(1_000, large=1_000)
    monkeypatch.setattr(portals, "HELD", held)
    monkeypatch.setattr(session, "HELD", held)
    client.execute("DECLARE small CURSOR WITH HOLD FOR SELECT 1 AS one")
    client.execute("DECLARE a CURSOR WITH HOLD FOR SELECT x FROM generate_series(1, 9000) AS s(x)")
    client.execute("FETCH small")
    assert held.bytes == 0
    client.execute("FETCH a")
    assert held.bytes >= 9_000
    with psycopg.connect(shop.dsn(), autocommit=True) as other:
        other.execute("DECLARE b CURSOR WITH HOLD FOR SELECT 2 AS two")
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="all sessions"):
            other.execute("FETCH b")
        client.execute("CLOSE a")
        for _ in range(100):
            if not held.bytes:
                break
            gc.collect()
            time.sleep(0.05)
        assert other.execute("FETCH b").fetchone() == (2,)


def test_what_is_held_counts_until_its_holder_is_gone() -> None:
    held, one, two = Held(10, large=100), portals.Portal(None), portals.Portal(None)
    held.hold(one, 150)
    held.hold(two, 200)
    held.hold(portals.Portal(None), 99)
    assert held.bytes == 350
    del one
    gc.collect()
    assert held.bytes == 200


def test_memory_is_given_back_after_a_large_answer(
    client: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = threading.Event()
    give_back = room.give_back

    def noted() -> None:
        give_back()
        given.set()

    monkeypatch.setattr(room, "give_back", noted)
    rows = client.execute("SELECT x FROM generate_series(1, 40000) AS s(x)").fetchall()
    assert len(rows) == 40_000
    assert given.wait(10)
