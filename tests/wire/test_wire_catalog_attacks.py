"""Catalog queries that took gigabytes or minutes: they end, and another log-in is answered meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psycopg
import pytest
from endpoint import PASSWORD, Endpoint, cancel_once_begun, endpoint, generous

from dpsql.engines.catalog import pool
from dpsql.engines.catalog.pool import LEAST, OWN, WORKERS

FAST = 10.0
"""Seconds on a machine that does much else: without bounds these take minutes, or do not end."""
LARGE = {
    "repeated": "SELECT length(repeat('x', 2000000000))",
    "collected": "SELECT array_agg(a.oid) FROM pg_class a, pg_class b, pg_class c",
    "rows": "SELECT x FROM generate_series(1, 100000000) AS s(x)",
    "doubled": "WITH RECURSIVE t(x) AS (SELECT 'xxxxxxxxxxxxxxxx' UNION ALL SELECT x || x FROM t)"
    " SELECT max(length(x)) FROM t",
    "joined": "SELECT string_agg(a.proname || b.proname, ',') FROM pg_proc a, pg_proc b",
    "distinct": "SELECT count(DISTINCT a.proname || b.proname) FROM pg_proc a, pg_proc b",
}
ENDLESS = "WITH RECURSIVE t(x) AS (SELECT {} UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t"


def _two(text: str) -> str:
    return (
        generous(text) + f"  viewer:\n    password: {PASSWORD}\n    epsilon: 9\n    delta: 1e-6\n"
    )


@pytest.fixture(scope="module")
def two() -> Iterator[Endpoint]:
    """An endpoint with two log-ins."""
    with endpoint(_two) as found:
        yield found


def _connect(where: Endpoint, user: str) -> psycopg.Connection:
    return psycopg.connect(where.dsn(user=user), autocommit=True)


def _resident() -> int:
    """What this process, which the endpoint runs in, has in memory; 0 where that is not told."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    return 0


@pytest.mark.parametrize("sql", LARGE.values(), ids=LARGE.keys())
def test_what_took_gigabytes_or_minutes_is_refused_soon(two: Endpoint, sql: str) -> None:
    with _connect(two, "analyst") as hostile, _connect(two, "viewer") as other:
        other.execute("SELECT 1")
        before, begun = _resident(), time.monotonic()
        with pytest.raises(psycopg.OperationalError) as caught:
            hostile.execute(sql)  # type: ignore[arg-type]
        assert caught.value.sqlstate in ("53200", "54000", "57014")
        assert time.monotonic() - begun < FAST
        assert _resident() - before < 100_000_000
        assert other.execute("SELECT 2").fetchone() == (2,)
        assert hostile.execute("SELECT 3").fetchone() == (3,)


def test_what_is_refused_says_what_to_ask_instead(two: Endpoint) -> None:
    with _connect(two, "analyst") as client, pytest.raises(psycopg.OperationalError) as caught:
        client.execute("SELECT x FROM generate_series(1, 100000000) AS s(x)")
    assert caught.value.diag.message_detail == "an answer has at most 1000000 rows"
    assert "WHERE" in (caught.value.diag.message_hint or "")


def test_eight_connections_of_one_log_in_keep_nobody_waiting(
    two: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`SELECT 1` of another log-in took 10 s: eight statements ran in the threads that it needs."""
    monkeypatch.setattr(pool, "SECONDS", 20.0)
    monkeypatch.setattr(pool, "WAIT_SECONDS", 20.0)
    numbers, stop = itertools.count(), threading.Event()

    def loop() -> None:
        with _connect(two, "analyst") as hostile:
            while not stop.is_set():
                with contextlib.suppress(psycopg.Error):
                    hostile.execute(ENDLESS.format(next(numbers)))  # type: ignore[arg-type]

    threads = [threading.Thread(target=loop) for _ in range(8)]
    with _connect(two, "viewer") as other:
        other.execute("SELECT 99")
        for thread in threads:
            thread.start()
        try:
            while WORKERS.gauges().waiting < 2:
                time.sleep(0.01)
            waited = list[float]()
            for number in range(5):
                begun = time.monotonic()
                other.execute(f"SELECT {number} + 1")  # type: ignore[arg-type]
                waited.append(time.monotonic() - begun)
            assert sorted(waited)[2] < 5, waited
            assert max(waited) < 15, waited
        finally:
            stop.set()
            WORKERS.close()
            for thread in threads:
                thread.join()


def test_a_driver_reads_its_types_whatever_was_asked_before(two: Endpoint) -> None:
    """The engine allocates far more for that statement than it uses. The process has what is least."""

    async def ask(number: int) -> object:
        client = await asyncpg.connect(
            host="127.0.0.1", port=two.port, user="analyst", password=PASSWORD, database="shop"
        )
        try:
            return await client.fetchval(f"SELECT $1::int4[], {number}", [number])
        finally:
            await client.close()

    most, growth = WORKERS._most, WORKERS._growth
    WORKERS.resize(1, OWN + LEAST)
    try:
        with _connect(two, "analyst") as client:
            for number in range(3):
                with pytest.raises(psycopg.OperationalError):
                    client.execute(LARGE["distinct"] + f" WHERE a.oid > {number}")  # type: ignore[arg-type]
                client.execute(f"SELECT count(*) + {number} FROM pg_class a, pg_class b")  # type: ignore[arg-type]
                assert asyncio.run(ask(number)) == [number]
    finally:
        WORKERS.resize(most, growth + OWN)


def test_a_client_that_cancels_or_leaves_stops_its_catalog_query(
    two: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "SECONDS", 60.0)
    with _connect(two, "analyst") as client:
        begun = time.monotonic()
        canceller = cancel_once_begun(two, client)
        with pytest.raises(psycopg.errors.QueryCanceled):
            client.execute(ENDLESS.format(-1))  # type: ignore[arg-type]
        canceller.join()
        assert time.monotonic() - begun < pool.SECONDS / 2
        client.execute("SET statement_timeout = 200")
        begun = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled):
            client.execute(ENDLESS.format(-2))  # type: ignore[arg-type]
        assert time.monotonic() - begun < pool.SECONDS / 2
    end = time.monotonic() + pool.SECONDS
    while WORKERS.gauges().busy and time.monotonic() < end:
        time.sleep(0.02)
    assert time.monotonic() < end


def test_a_log_in_stops_its_own_catalog_query_from_another_connection(
    two: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stops a statement does not wait for it: one log-in may have several processes."""
    monkeypatch.setattr(pool, "SECONDS", 60.0)
    WORKERS._contended = 0.0
    with _connect(two, "viewer") as client, _connect(two, "viewer") as other:
        outcome = list[str | None]()

        def run() -> None:
            with pytest.raises(psycopg.OperationalError) as caught:
                client.execute(ENDLESS.format(-3))  # type: ignore[arg-type]
            outcome.append(caught.value.sqlstate)

        thread = threading.Thread(target=run)
        begun = time.monotonic()
        thread.start()
        while not WORKERS.gauges().busy:
            time.sleep(0.01)
        other.execute("SELECT pg_cancel_backend(%s)", (client.info.backend_pid,))
        thread.join()
        assert time.monotonic() - begun < pool.SECONDS / 2
        assert outcome == ["57014"]
