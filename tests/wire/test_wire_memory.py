"""What clients can make the endpoint hold, and what it does twice: both are bounded."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Iterator

import psycopg
import pyarrow as pa
import pytest
from endpoint import PASSWORD, ROLE, Endpoint
from talk import SYNC, Client, FixedHouse, bind, describe, errors, execute, parse, query

from dpsql.engines.catalog import pool as catalog_pool
from dpsql.engines.catalog.content import Bounds
from dpsql.engines.catalog.pool import Workers
from dpsql.engines.catalog.process import Statement
from dpsql.memory.pool import MODEST, POOL, Pool, Use
from dpsql.serve.pgwire import portals
from dpsql.serve.pgwire.asking import MOST_ENCODED, PIECE, Answer, Pause
from dpsql.serve.pgwire.frames import ENOUGH, FEW, Frames
from dpsql.serve.pgwire.machine import Phase
from dpsql.serve.pgwire.oids import INT8, TEXT, column
from dpsql.serve.pgwire.rows import data_rows


@pytest.fixture
def client(shop: Endpoint) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shop.dsn(), autocommit=True) as found:
        yield found


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that the catalog's engine is given."""
    given: list[str] = []
    run = Workers.run

    def noted(self: Workers, owner: str, statement: Statement) -> object:
        given.append(statement.sql)
        return run(self, owner, statement)

    monkeypatch.setattr(Workers, "run", noted)
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
    monkeypatch.setattr(catalog_pool, "BOUNDS", Bounds(bytes=1_000_000))
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


@pytest.fixture
def pool() -> Iterator[Pool]:
    """A pool of another size, as far as clients hold something in it."""
    gc.collect()
    before = POOL.held
    found = POOL.most
    yield POOL
    POOL.limit(found)
    for _ in range(20):
        if POOL.held <= before + 2 * FEW:
            break
        gc.collect()
        time.sleep(0.05)
    assert POOL.held <= before + 2 * FEW, POOL.bytes_by_use()


def _release(pool: Pool, use: Use, most: int) -> None:
    """Wait until what is gone counts no more."""
    for _ in range(100):
        if pool.bytes_by_use()[use.name.lower()] <= most:
            return
        time.sleep(0.05)
    raise AssertionError(pool.bytes_by_use())


def _prepared(talk: Client, names: list[str]) -> int:
    """The bytes that are counted for statements of a client."""
    assert talk.machine.session is not None
    found = talk.machine.session.names.prepared
    return sum(hold.bytes for name in names if (hold := found[name].memory) is not None)


NUMBERS = "SELECT x FROM generate_series(1, {}) AS s(x)"


def test_open_cursors_of_a_login_hold_so_much(client: psycopg.Connection, pool: Pool) -> None:
    before = pool.bytes_by_use()["answers"]  # of clients that other tests have open
    pool.limit(8 * MODEST)
    client.execute("DECLARE a CURSOR WITH HOLD FOR " + NUMBERS.format(200_000))
    client.execute("DECLARE b CURSOR WITH HOLD FOR " + NUMBERS.format(350_001))
    assert client.execute("FETCH a").fetchone() == (1,)
    assert pool.bytes_by_use()["answers"] >= 1_600_000
    with pytest.raises(psycopg.errors.OutOfMemory, match="asking again is free"):
        client.execute("FETCH b")
    assert client.execute("FETCH a").fetchone() == (2,)
    assert client.execute("SELECT 40300").fetchone() == (40300,)
    client.execute("CLOSE a")
    client.execute("CLOSE b")
    client.execute("DECLARE b CURSOR WITH HOLD FOR " + NUMBERS.format(350_001))
    assert client.execute("FETCH b").fetchone() == (1,)
    client.execute("CLOSE ALL")
    _release(pool, Use.ANSWERS, before)


def test_prepared_statements_keep_their_text_and_count_it(shop: Endpoint, pool: Pool) -> None:
    gc.collect()
    others = pool.bytes_by_use()["prepared"]  # of clients that other tests have open
    talk = Client(FixedHouse(shop.house))
    talk.login(ROLE, PASSWORD)
    text, most = f"SELECT 1 WHERE 0 NOT IN ({'1, ' * 3_000}", pool.most
    talk.send(parse("p", f"{text} 1)") + parse("one", "SELECT 1") + SYNC)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for i in range(8):
            talk.send(parse(f"p{i}", f"{text} {i + 1})") + SYNC)
        pool.limit(0)  # all caches are given up
        pool.limit(most)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    counted = _prepared(talk, [f"p{i}" for i in range(8)])
    assert pool.bytes_by_use()["prepared"] >= counted
    assert 8 * len(text) <= counted <= 8 * (len(text) + 5_000)
    assert kept <= 2 * counted + 200_000
    pool.limit(2 * MODEST)
    long = [parse(f"q{i}", f"SELECT '{'x' * 50_000}'") + SYNC for i in range(30)]
    assert set(errors(b"".join(map(talk.send, long)))) == {"53200"}
    assert errors(talk.send(bind("", "one") + execute("") + SYNC)) == []
    talk.send(query("DEALLOCATE ALL"))
    assert pool.bytes_by_use()["prepared"] <= others


@pytest.mark.parametrize(("count", "code"), [(10_000, None), (10_001, "54000"), (60_000, "54000")])
def test_a_statement_has_so_many_parameters(shop: Endpoint, count: int, code: str | None) -> None:
    talk = Client(FixedHouse(shop.house))
    talk.login(ROLE, PASSWORD)
    listed = ", ".join(f"${i}" for i in range(1, count + 1))
    text = f"SELECT 1 WHERE 1 IN ({listed})"
    told = errors(
        talk.send(parse("s", text, *[20] * min(count, 30_000)) + describe("S", "s") + SYNC)
    )
    assert told == ([code] if code else [])


def test_portals_count_their_parameters(shop: Endpoint, pool: Pool) -> None:
    talk = Client(FixedHouse(shop.house))
    talk.login(ROLE, PASSWORD)
    talk.send(parse("s", "SELECT $1::text") + SYNC)
    before = pool.held
    talk.send(query("BEGIN") + bind("one", "s", b"x" * 60_000))
    assert pool.bytes_by_use()["portals"] >= 60_000
    pool.limit(2 * MODEST)
    said = b"".join(talk.send(bind(f"p{i}", "s", b"x" * 60_000)) for i in range(20))
    assert errors(said) == ["53200"]
    talk.send(SYNC + query("ROLLBACK"))
    assert pool.held == before


def test_savepoints_count(shop: Endpoint, pool: Pool) -> None:
    talk = Client(FixedHouse(shop.house))
    talk.login(ROLE, PASSWORD)
    others = pool.bytes_by_use()["sessions"]
    pool.limit(2 * MODEST)
    said = talk.send(query("BEGIN" + "; SAVEPOINT s" * 900))
    assert errors(said) == ["53200"]
    talk.send(query("ROLLBACK"))
    assert pool.bytes_by_use()["sessions"] <= others


def test_what_is_received_counts_until_it_is_carried_out(shop: Endpoint, pool: Pool) -> None:
    talk = Client(FixedHouse(shop.house))
    talk.login(ROLE, PASSWORD)
    long = query("SELECT 1 -- " + "x" * 900_000)
    assert talk.machine.hungry
    talk.machine.receive(long[:800_000])
    assert pool.bytes_by_use()["received"] >= 800_000
    assert talk.machine.hungry
    assert errors(talk.send(long[800_000:])) == []
    assert pool.bytes_by_use()["received"] == 0
    pool.limit(MODEST)
    talk.machine.receive(long[:200_000])
    talk.machine.receive(long[200_000:] + long)
    assert errors(talk.machine.take()) == ["53200"]
    assert talk.machine.phase is Phase.CLOSED
    talk.machine.drop()
    assert pool.bytes_by_use()["received"] == 0


def test_little_is_read_ahead(shop: Endpoint) -> None:
    talk = Client(FixedHouse(shop.house))
    talk.login(ROLE, PASSWORD)
    talk.machine.ask = Pause()
    for _ in range(30):
        assert talk.machine.hungry
        talk.machine.receive(query("SELECT 1 -- " + "x" * 10_000))
        if talk.machine.backlog > ENOUGH:
            break
    assert not talk.machine.hungry


def test_a_client_that_does_not_read_counts_and_leaves_nothing(shop: Endpoint, pool: Pool) -> None:
    before = pool.bytes_by_use()
    connection = psycopg.connect(shop.dsn(), autocommit=True)
    raw = connection.pgconn
    raw.send_query(b"SELECT repeat('x', 4000) AS t FROM generate_series(1, 4000) AS s(x)")
    held = pool.bytes_by_use()
    for _ in range(300):
        held = pool.bytes_by_use()
        if held["unsent"] > 200_000:
            break
        time.sleep(0.02)
    assert 200_000 < held["unsent"] <= 4 * PIECE
    assert held["answers"] >= 16_000_000
    connection.close()
    for use in (Use.UNSENT, Use.ANSWERS):
        _release(pool, use, before[use.name.lower()])


def test_long_rows_go_in_pieces() -> None:
    texts = ["x" * 50_000] * 100 + ["y"] * 30_000 + ["z" * 3_000_000]
    answer = Answer((column("t", TEXT),), pa.table({"t": texts}))
    pieces = list(answer.pieces(0, answer.count))
    assert [a for a, _ in pieces] == [0, *(b for _, b in pieces[:-1])]
    assert pieces[-1][1] == answer.count
    parts = [data_rows(answer.table.slice(a, b - a), answer.columns, (0,)) for a, b in pieces]
    assert max(map(len, parts[:-1])) <= 1.5 * PIECE
    assert b"".join(parts) == data_rows(answer.table, answer.columns, (0,))
    assert len(pieces) < 30
    assert list(answer.pieces(5, 5)) == []
    assert list(answer.pieces(100, 102)) == [(100, 102)]


def test_an_answer_is_kept_in_so_many_formats() -> None:
    names = tuple(column(f"c{i}", INT8) for i in range(4))
    answer = Answer(names, pa.table({c.name: [1, 2] for c in names}))
    for code in range(16):
        answer.rows(tuple(code >> i & 1 for i in range(4)))
    assert len(answer.encoded) == MOST_ENCODED
    assert sum(map(len, answer.encoded.values())) <= MOST_ENCODED * answer.most_encoded


def test_settings_of_a_session_are_so_long(client: psycopg.Connection) -> None:
    for i in range(2):
        client.execute(f"SET a.b{i} = '{'x' * 9_000}'")
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        client.execute(f"SET a.b2 = '{'x' * 9_000}'")


def test_without_the_count_of_portals_it_would_be_noticed(
    shop: Endpoint, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portals, "_size", lambda *_: 0)
    monkeypatch.setattr(portals, "getsizeof", lambda _: 0)
    with pytest.raises(AssertionError):
        test_portals_count_their_parameters(shop, pool)


def test_without_dropping_what_a_client_left_it_would_be_noticed(
    shop: Endpoint, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Frames, "drop", lambda _: None)
    with pytest.raises(AssertionError):
        test_what_is_received_counts_until_it_is_carried_out(shop, pool)
    monkeypatch.undo()
    gc.collect()
