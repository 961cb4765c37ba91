"""Post-processing ends at its deadline or when it is interrupted, and takes no more than its share."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import duckdb
import pyarrow as pa
import pytest

from dpsql.diagnostics.refusal import Ended, EngineFailed, Stopped, TooLarge
from dpsql.execution import execution, interrupt
from dpsql.release import postprocess
from dpsql.release.postprocess import PART, PostProcessor

MANY = 100_000
TABLE = pa.table({"k0": range(MANY), "m1": [i * 0.5 for i in range(MANY)]})
ENDLESS = "SELECT sum(a.m1 * b.m1) AS o0 FROM t AS a, t AS b"
"""A self-join of stored groups: ten thousand million pairs."""
PAIRS = "SELECT a.k0 AS o0, b.k0 AS o1 FROM t AS a, t AS b"
LONG = 10.0


@pytest.fixture(scope="module")
def post() -> PostProcessor:
    return PostProcessor(4 * PART)


def _run(post: PostProcessor, sql: str, seconds: float = 60, login: str = "anna") -> pa.Table:
    with post.part(login) as room, execution(seconds, room=room):
        return post.run(sql, {"t": TABLE})


def _small(post: PostProcessor, login: str) -> float:
    begun = time.monotonic()
    assert _run(post, "SELECT count(*) AS o0 FROM t", login=login).to_pydict() == {"o0": [MANY]}
    return time.monotonic() - begun


def _timed(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    with pytest.raises(Stopped):
        work()
    return time.monotonic() - begun


@pytest.mark.parametrize("sql", [ENDLESS, f"SELECT count(*) AS o0 FROM ({PAIRS})"])
def test_a_deadline_stops_it(post: PostProcessor, sql: str) -> None:
    assert 0.2 <= _timed(lambda: _run(post, sql, 0.2)) < LONG
    _small(post, "anna")


def test_without_the_deadline_it_goes_on(
    post: PostProcessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault: the deadline is not passed on to the engine."""
    monkeypatch.setattr(postprocess, "stoppable", lambda _: nullcontext())
    connections = list[duckdb.DuckDBPyConnection]()

    def work() -> None:
        with post.part("anna") as room, execution(0.2, room=room):
            connections.append(post._connection())
            post.run(ENDLESS, {"t": TABLE})

    with ThreadPoolExecutor(1) as threads:
        ending = threads.submit(work)
        time.sleep(1.3)
        assert not ending.done()
        connections[0].interrupt()
        assert isinstance(ending.exception(LONG), Stopped)


def test_eight_at_once_are_stopped_and_meanwhile_others_are_answered(post: PostProcessor) -> None:
    """By interrupts of their threads, while another login and the same one ask small questions."""
    threads, times = list[int](), list[float]()

    def work() -> None:
        threads.append(threading.get_ident())
        times.append(_timed(lambda: _run(post, ENDLESS)))

    with ThreadPoolExecutor(8) as many:
        ending = [many.submit(work) for _ in range(8)]
        end = time.monotonic() + LONG
        while len(threads) < 8 and time.monotonic() < end:
            time.sleep(0.01)
        assert len(threads) == 8
        took = max(_small(post, login) for login in ("anna", "ben"))
        stopped = time.monotonic()
        for thread in threads:
            interrupt(thread)
        for end in ending:
            end.result(LONG)
        assert time.monotonic() - stopped < LONG
        assert took < LONG, "a small question waited for large ones"
    assert len(times) == 8
    _small(post, "anna")


def test_an_interrupt_before_it_begins_is_heard_once_it_has_begun(post: PostProcessor) -> None:
    with post.part("anna") as room, execution(60, room=room):
        post.run("SELECT 1 AS o0", {})
        interrupt(threading.get_ident())
        assert _timed(lambda: post.run(ENDLESS, {"t": TABLE})) < LONG


def test_rows_are_fetched_up_to_a_bound(post: PostProcessor) -> None:
    """Ten thousand million rows take no more than the room for results, and then an error."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TooLarge, match=r"DP905.*LIMIT"):
        _run(post, PAIRS)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < PART // 1024
    assert _run(post, f"{PAIRS} LIMIT 1000").num_rows == 1000
    assert all(part.room.taken == 0 for part in post._parts)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT quantile_cont(a.m1 * b.m1, 0.5) AS o0 FROM t AS a, t AS b",
        f"SELECT DISTINCT o0, o1 FROM ({PAIRS})",
        f"SELECT * FROM ({PAIRS}) ORDER BY -o0 * 7919 % 100003, o1 LIMIT 3000000",
    ],
)
def test_an_engine_takes_no_more_than_its_share(post: PostProcessor, sql: str) -> None:
    """And writes nothing to a disk instead."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TooLarge):
        _run(post, sql)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2 * PART // 1024
    found = post._connection().execute("SELECT current_setting('temp_directory')").fetchall()
    assert found == [("",)]
    _small(post, "anna")


def test_one_login_leaves_the_memory_of_others(post: PostProcessor) -> None:
    """Others have an engine and room of their own, while there are as many."""
    with post.part("anna") as first, post.part("ben") as second, post.part("anna") as again:
        assert first is again
        assert first is not second
        with execution(60, room=first):
            pass
    with post.part("a"), post.part("b"), post.part("c"), post.part("d") as last:
        with post.part("e") as shared:
            assert shared in {part.room for part in post._parts}
        with post.part("d") as same:
            assert same is last
    assert not any(part.logins for part in post._parts)


def test_what_one_thread_registers_no_other_sees() -> None:
    """One engine for two logins: tables, views and what the engine lists of them."""
    post, inside, outside = PostProcessor(PART, parts=1), threading.Barrier(2), threading.Barrier(2)
    secret = pa.table({"v": [41]})

    def hold() -> None:
        with post.part("anna"):
            connection = post._connection()
            connection.register("mine", secret)
            inside.wait(LONG)
            outside.wait(LONG)

    with ThreadPoolExecutor(1) as threads:
        holding = threads.submit(hold)
        inside.wait(LONG)
        with post.part("ben"):
            other = post._connection()
            for sql in (
                "FROM mine",
                "FROM temp.mine",
                "FROM memory.main.mine",
                "FROM temp.main.mine",
            ):
                with pytest.raises(duckdb.Error):
                    other.execute(sql)
            listed = "SELECT view_name FROM duckdb_views() WHERE NOT internal"
            tables = "SELECT table_name FROM duckdb_tables()"
            assert other.execute(f"{listed} UNION ALL {tables}").fetchall() == []
            other.register("mine", pa.table({"v": [1]}))
            assert other.execute("SELECT v FROM mine").fetchall() == [(1,)]
        outside.wait(LONG)
        holding.result(LONG)


def test_a_failure_is_not_called_a_stop(post: PostProcessor) -> None:
    with pytest.raises(EngineFailed):
        _run(post, "SELECT CAST('x' AS INTEGER) AS o0")
    assert not issubclass(Ended, EngineFailed)


def test_small_shares_are_not_divided() -> None:
    counts = [len(PostProcessor(PART * n // 2)._parts) for n in (1, 2, 5, 18)]
    assert counts == [1, 1, 2, 4]
