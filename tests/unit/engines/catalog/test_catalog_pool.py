"""Catalog queries in processes of their own: no statement takes memory, time or a turn from another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from support.catalogs import RecordedEffects, workers

from dpsql.diagnostics.refusal import PolicyError
from dpsql.engines.catalog import pool as pool_module
from dpsql.engines.catalog import process as process_module
from dpsql.engines.catalog.content import CatalogFailed, Content
from dpsql.engines.catalog.pool import LEAST, Workers, by_state
from dpsql.engines.catalog.process import Process, Statement
from dpsql.engines.duckdb.allowlist import OPERATORS, Listing
from dpsql.engines.duckdb.lockdown import NotLocked

NONE = frozenset[str]()
CONTENT = Content((), {}, (), Listing(
    frozenset(), OPERATORS | {"pgx_set", "pgx_stop", "array_agg", "replace", "count_star", "count", "string_agg", "length", "max", "repeat"},
    frozenset({"generate_series"}), NONE, frozenset({"varchar"}),
))  # fmt: skip
ENDLESS = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t"
GROWTH = LEAST
AMPLE = 60.0
LARGE = {
    "concatenated": "WITH RECURSIVE t(x) AS (SELECT 'xxxxxxxxxxxxxxxx' UNION ALL SELECT x || x FROM t)"
    " SELECT max(length(x)) FROM t",
    "replaced": "SELECT length(replace(replace(replace(repeat('x', 10000), 'x', repeat('x', 1000)),"
    " 'x', repeat('x', 1000)), 'x', repeat('x', 1000)))",
    "collected": "SELECT length(string_agg(a.x || '', '')) FROM"
    " generate_series(1, 10000) a(x), generate_series(1, 10000) b(x)",
    "distinct": "SELECT count(DISTINCT repeat('x', 1000) || a.x || ' ' || b.x) FROM"
    " generate_series(1, 1000) a(x), generate_series(1, 1000) b(x)",
    "listed": "SELECT array_agg(a.x) FROM generate_series(1, 10000) a(x), generate_series(1, 10000) b(x)",
}
"""What took gigabytes."""
FITS = "SELECT length(string_agg(x || '', '')) > 0 FROM generate_series(1, 1000000) s(x)"
"""What takes much of what a statement may take."""


def one(pool: Workers, sql: str, owner: str = "a", content: Content = CONTENT) -> object:
    return pool.run(owner, Statement(content, sql)).table.columns[0].to_pylist()


def failing(pool: Workers, sql: str, owner: str = "a") -> str:
    with pytest.raises(CatalogFailed) as caught:
        one(pool, sql, owner)
    return caught.value.kind


def until(true: Callable[[], bool], seconds: float = AMPLE / 2) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def busy(pool: Workers) -> list[Process]:
    with pool._changed:
        return [p for p in pool._busy.values() if p is not None]


def idle(pool: Workers) -> list[Process]:
    with pool._changed:
        return list(pool._idle)


def running(pool: Workers) -> int:
    """How many statements run, and do not wait for a process that starts."""
    with pool._changed:
        return sum(ticket.since > 0 for ticket in pool._busy)


def pids(pool: Workers) -> list[int]:
    return [p.pid for p in (*idle(pool), *busy(pool))]


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(autouse=True)
def ample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times that a busy machine does not reach; a test shortens the one that it is about."""
    for name in ("SECONDS", "WAIT_SECONDS", "LEAST_SECONDS", "CONTENDED_SECONDS", "IDLE_SECONDS"):
        monkeypatch.setattr(pool_module, name, AMPLE)
    monkeypatch.setattr(process_module, "GRACE", AMPLE)


@pytest.fixture(scope="module")
def shared() -> Iterator[Workers]:
    with workers(growth=GROWTH) as found:
        yield found


@pytest.fixture
def pool(shared: Workers) -> Workers:
    """Nobody has found all processes taken, and none is being started."""
    until(lambda: not (shared._starting or shared._lost))
    shared._contended = 0.0
    return shared


class Running:
    """A statement in a thread of its own, and what became of it."""

    def __init__(self, pool: Workers, sql: str, owner: str = "a") -> None:
        self.pool, self.outcome = pool, object()

        def run() -> None:
            try:
                self.outcome = one(pool, sql, owner)
            except CatalogFailed as failure:
                self.outcome = failure.kind

        self.thread = threading.Thread(target=run)
        self.thread.start()

    def stop(self) -> None:
        assert self.thread.ident is not None
        while self.thread.is_alive():
            self.pool.interrupt(self.thread.ident)
            self.thread.join(0.1)
        assert self.outcome == "interrupted"

    def end(self) -> object:
        self.thread.join(2 * AMPLE)
        return self.outcome


@pytest.mark.parametrize("sql", LARGE.values(), ids=LARGE.keys())
def test_what_grows_without_end_is_ended_and_nobody_else_notices(pool: Workers, sql: str) -> None:
    before = pool.gauges().killed
    assert failing(pool, sql) in ("memory", "died", "large")
    assert pool.gauges().killed <= before + 1
    assert one(pool, "SELECT 1", "b") == [1]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="its limit is known to be kept")
def test_the_system_itself_bounds_memory() -> None:
    """Whatever the engine counts: its own limit is left out here. Without the system's, nothing holds."""
    boundless = """
from dpsql.engines.catalog import database
made = database.CatalogDatabase.__init__
database.CatalogDatabase.__init__ = lambda self, content, memory: made(self, content, 2**40)
"""
    unlimited = (
        "from dpsql.engines.catalog import limits\nlimits.limit_growth = lambda growth: True\n"
    )
    sql = f"SELECT length(repeat(repeat('x', 1000), {2 * GROWTH // 1000}))"
    with workers(boundless, growth=GROWTH) as bounded:
        assert failing(bounded, sql) in ("memory", "died")
    with workers(boundless + unlimited, growth=GROWTH) as unbounded:
        assert one(unbounded, sql) == [2 * GROWTH]


def test_a_statement_has_so_long(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    one(pool, "SELECT 1")
    before, killed = set(pids(pool)), pool.gauges().killed
    monkeypatch.setattr(pool_module, "SECONDS", 0.3)
    assert failing(pool, ENDLESS) == "interrupted"
    assert set(pids(pool)) >= before, "what can be interrupted is not killed"
    assert pool.gauges().killed == killed


DEAF = """
from dpsql.engines.catalog import database
database.CatalogDatabase.interrupt = lambda self: None
"""


def test_a_statement_that_cannot_be_interrupted_ends_with_its_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_module, "GRACE", 0.5)
    with workers(DEAF) as pool:
        one(pool, "SELECT 1")
        before = set(pids(pool))
        monkeypatch.setattr(pool_module, "SECONDS", 0.2)
        begun = time.monotonic()
        assert failing(pool, ENDLESS) == "interrupted"
        assert time.monotonic() - begun < AMPLE / 2
        monkeypatch.setattr(pool_module, "SECONDS", AMPLE)
        assert not all(map(lives, before))
        until(lambda: pool.gauges().alive >= 1)  # before anybody asks
        assert one(pool, "SELECT 2") == [2]
        assert pool.gauges().killed == 1


def test_what_another_thread_asks_is_stopped_running_or_waiting(pool: Workers) -> None:
    asked = [Running(pool, ENDLESS) for _ in range(3)]
    until(lambda: pool.gauges()[1:3] == (2, 1))
    for each in asked:
        each.stop()
    pool.interrupt(12)


def test_one_login_has_several_processes_while_nobody_else_wants_one(pool: Workers) -> None:
    """What it sends to stop its own statement does not wait for that statement."""
    long = Running(pool, ENDLESS)
    until(lambda: pool.gauges().busy == 1)
    begun = time.monotonic()
    assert one(pool, "SELECT 1") == [1]
    assert time.monotonic() - begun < AMPLE / 2
    long.stop()


def test_a_wait_counts(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login that floods waits for itself, and nothing of it lasts longer for that."""
    monkeypatch.setattr(pool_module, "WAIT_SECONDS", 1.0)
    monkeypatch.setattr(pool_module, "LEAST_SECONDS", 1.0)
    begun = time.monotonic()
    flood = [Running(pool, ENDLESS) for _ in range(12)]
    assert {each.end() for each in flood} == {"interrupted", "busy"}
    assert time.monotonic() - begun < pool_module.SECONDS


def test_one_login_leaves_a_process_for_others(pool: Workers) -> None:
    """However many statements of one run and wait, those of another are answered at once."""
    hostile = [Running(pool, ENDLESS, "hostile") for _ in range(6)]
    until(lambda: pool.gauges()[1:3] == (2, 4))
    for number in range(5):
        begun = time.monotonic()
        assert one(pool, f"SELECT {number}", "other") == [number]
        assert time.monotonic() - begun < AMPLE / 2
    until(lambda: pool.gauges()[1:3] == (1, 5))  # what gave way waits for its turn
    for each in hostile:
        each.stop()


def test_without_giving_way_one_login_keeps_all(
    pool: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workers, "_claim", lambda *_: None)
    hostile = [Running(pool, ENDLESS, "hostile") for _ in range(2)]
    until(lambda: pool.gauges().busy == 2)
    monkeypatch.setattr(pool_module, "WAIT_SECONDS", 0.3)
    assert failing(pool, "SELECT 1", "other") == "busy"
    for each in hostile:
        each.stop()


def test_what_gave_way_is_begun_again_unless_it_has_done_something(pool: Workers) -> None:
    class Session:
        def stop(self, process: int, *, ends: bool) -> bool:
            return True

        def set(self, name: str, value: str, *, local: bool) -> str:
            return value

    outcomes = list[str]()

    def ask(effects: Session | None) -> None:
        try:
            pool.run("hostile", Statement(CONTENT, ENDLESS, effects=effects))
        except CatalogFailed as failure:
            outcomes.append(failure.kind)

    first = threading.Thread(target=ask, args=(None,))
    first.start()
    until(lambda: running(pool) == 1)
    second = threading.Thread(target=ask, args=(Session(),))
    second.start()
    until(lambda: running(pool) == 2)
    assert one(pool, "SELECT 1", "other") == [1]
    second.join(AMPLE)
    assert outcomes == ["busy"]
    assert first.ident is not None
    pool.interrupt(first.ident)
    first.join(AMPLE)
    assert outcomes == ["busy", "interrupted"]


def test_a_process_that_is_killed_takes_nothing_with_it(pool: Workers) -> None:
    one(pool, "SELECT 1")
    killed = pool.gauges().killed
    long = Running(pool, ENDLESS)
    until(lambda: pool.gauges().busy == 1)
    (process,) = busy(pool)
    os.kill(process.pid, signal.SIGKILL)
    assert long.end() == "died"
    assert one(pool, "SELECT 2") == [2]
    assert pool.gauges().killed == killed + 1


def test_nobody_is_given_a_process_that_was_killed_while_it_was_idle(pool: Workers) -> None:
    one(pool, "SELECT 1")

    def all_dead() -> bool:
        living = [p for p in idle(pool) if p.alive]
        for process in living:
            os.kill(process.pid, signal.SIGKILL)
        return not living

    until(all_dead)
    assert one(pool, "SELECT 2") == [2]


def test_statements_at_once_have_their_own_effects(pool: Workers) -> None:
    sessions = [RecordedEffects() for _ in range(4)]
    together = threading.Barrier(len(sessions))

    def ask(number: int) -> None:
        sql = f"SELECT pgx_set('a', '{number}', false), pgx_stop({number}, true) FROM generate_series(1, 100)"
        together.wait()
        for _ in range(3):
            pool.run(f"login {number}", Statement(CONTENT, sql, effects=sessions[number]))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(len(sessions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [s.kept for s in sessions] == [{str(n)} for n in range(len(sessions))]
    assert [s.stopped for s in sessions] == [{n} for n in range(len(sessions))]


def test_what_an_effect_raises_reaches_who_asks(pool: Workers) -> None:
    class Refusing:
        def stop(self, process: int, *, ends: bool) -> bool:
            raise LookupError(process)

        def set(self, name: str, value: str, *, local: bool) -> str:
            return value

    before = set(pids(pool))
    with pytest.raises(LookupError):
        pool.run("a", Statement(CONTENT, "SELECT pgx_stop(7, true)", effects=Refusing()))
    assert set(pids(pool)) >= before, "it can be asked again"


def test_a_process_has_two_catalogs_and_takes_others_in_turn(pool: Workers) -> None:
    contents = [_with_macro(n) for n in range(3)]
    for _ in range(2):
        assert [one(pool, "SELECT n()", content=c) for c in contents] == [[0], [1], [2]]


def _with_macro(number: int) -> Content:
    listed = Listing(frozenset(), frozenset({"n"}), NONE, NONE, NONE)
    return Content((f"CREATE MACRO n() AS {number}",), {}, (), listed)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are listed there")
def test_a_process_has_no_descriptor_of_its_parent(pool: Workers, tmp_path: Path) -> None:
    """No ledger, database or connection; what it has itself are its socket, /dev/null and pipes."""
    with (tmp_path / "ledger.db").open("wb") as ledger:
        os.set_inheritable(ledger.fileno(), True)
        with workers() as fresh:
            one(fresh, "SELECT 1")
            for pid in pids(fresh):
                links = [str(f.readlink()) for f in Path(f"/proc/{pid}/fd").iterdir()]
                assert [n for n in links if n.startswith("/")] == ["/dev/null"] * 2
                assert sum(n.startswith("socket:") for n in links) == 1
                environment = Path(f"/proc/{pid}/environ").read_bytes()
                assert b"HOME=" not in environment
                assert b"DPSQL" not in environment


PARENT = """
import sys, threading, time
sys.path[:0] = {path!r}
from test_catalog_pool import CONTENT, ENDLESS, one, pids, pool_module
pool_module.SECONDS = 60.0
pool = pool_module.Workers()
one(pool, "SELECT 1")
threading.Thread(target=one, args=(pool, ENDLESS), daemon=True).start()
threading.Thread(target=one, args=(pool, ENDLESS, "b"), daemon=True).start()
while pool.gauges().busy < 2: time.sleep(0.01)
print(*pids(pool), flush=True)
time.sleep(60)
"""


def test_no_process_outlives_a_parent_that_was_killed() -> None:
    script = PARENT.format(path=[str(Path(__file__).parent), *sys.path])
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        children = [int(n) for n in parent.stdout.readline().split()]
        assert len(children) == 2
        parent.kill()
    until(lambda: not any(map(_runs, children)))


def _runs(pid: int) -> bool:
    """A process that nobody has waited for yet has ended too."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return lives(pid) and not Path("/proc").exists()


def test_what_is_idle_ends_but_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with workers(growth=GROWTH) as pool:
        long = Running(pool, ENDLESS)
        until(lambda: pool.gauges().alive == 2)  # while all are busy, another is made ready
        one(pool, "SELECT 1", "b")
        long.stop()
        assert pool.gauges().alive == 2
        monkeypatch.setattr(pool_module, "IDLE_SECONDS", 0.0)
        until(lambda: pool.gauges().alive == 1)


def test_a_process_that_a_statement_has_left_large_is_replaced(pool: Workers) -> None:
    """Its memory would be missing to the next statement, whoever sends it."""
    one(pool, "SELECT 1")
    killed = pool.gauges().killed
    for _ in range(3):
        assert failing(pool, LARGE["distinct"]) == "memory"
        assert one(pool, FITS, "b") == [True]
    assert pool.gauges().killed == killed


def test_other_limits_hold_from_then_on(pool: Workers) -> None:
    one(pool, "SELECT 1")
    before = set(pids(pool))
    try:
        pool.resize(2, 400_000_000)
        assert one(pool, "SELECT 1") == [1]
        assert not before & set(pids(pool))
        pool.resize(2, 400_000_000)
        after = pids(pool)
        assert one(pool, "SELECT 1") == [1]
        assert set(pids(pool)) & set(after)
        assert by_state(pool.gauges())["busy",] == 0 < by_state(pool.gauges())["idle",]
    finally:
        pool.resize(2, 0)


def test_a_process_that_starts_while_limits_change_is_not_kept() -> None:
    """Its limit is the one before."""
    growths = list[int]()

    def start(growth: int) -> Process:
        growths.append(growth)
        if len(growths) == 2:  # in place of the one that is lost
            pool.resize(1, 400_000_000)
        return Process(growth)

    pool = Workers(1, GROWTH, start)
    try:
        long = Running(pool, ENDLESS)
        until(lambda: running(pool) == 1)
        os.kill(pids(pool)[0], signal.SIGKILL)
        assert long.end() == "died"
        until(lambda: len(growths) >= 2 and not pool._starting)
        assert one(pool, "SELECT 2") == [2]
        assert growths[0] == growths[1] < growths[-1]
        assert [p.growth for p in idle(pool)] == growths[-1:]
    finally:
        pool.close()


def test_a_process_that_can_get_out_is_not_used() -> None:
    open_engine = """
from dpsql.engines.duckdb import lockdown
lockdown.SETTINGS = {"lock_configuration": "true"}
"""
    with workers(open_engine) as pool, pytest.raises(NotLocked, match="nothing is served"):
        pool.check()


def test_a_process_that_does_not_start_is_told_of() -> None:
    with workers("import sys; sys.exit(1)\n") as pool:
        with pytest.raises(PolicyError, match="does not start"):
            pool.check()
        assert failing(pool, "SELECT 1") == "died"


TALK = """
import json, socket, struct, time
end = socket.socket(fileno=0)
def say(head, body=b""):
    said = json.dumps(head).encode()
    return struct.pack("!IQ", len(said), len(body)) + said + body
end.sendall(say({{"ready": 1}}) + say({{}}))
while True:
    {say}
"""
"""A process that is ready, has the catalog, and then says something again and again."""


@pytest.mark.parametrize("say", [
    'end.sendall(1000 * say({"part": True}))',
    'end.sendall(1000 * say({"effect": "set", "name": "a", "value": "b", "local": True}))',
], ids=["parts", "effects"])  # fmt: skip
def test_a_process_that_talks_without_end_is_ended(
    say: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for it longer than for one that is silent."""
    monkeypatch.setattr(pool_module, "SECONDS", 0.3)
    monkeypatch.setattr(process_module, "GRACE", 0.3)
    process = Process(GROWTH, (sys.executable, "-c", TALK.format(say=say)))
    pool = Workers(1, GROWTH, start=lambda _: process)
    asked = Running(pool, "SELECT 1")
    asked.thread.join(AMPLE / 2)
    ended = not asked.thread.is_alive()
    process.end()  # or the test would not end
    assert ended
    assert asked.end() == "interrupted"


def _stream(*columns: pa.Array) -> bytes:
    table = pa.Table.from_arrays(columns, [str(i) for i in range(len(columns))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("columns", [[pa.nulls(2_000_000)], [pa.array([1]), pa.array([2])], []],
                         ids=["rows without bytes", "more columns", "no columns"])  # fmt: skip
def test_an_answer_has_the_rows_and_columns_that_were_agreed(columns: list[pa.Array]) -> None:
    answer = (
        f'say({{"part": True}}, {_stream(*columns)!r}) + say({{"columns": [["a", "INTEGER"]]}})'
    )
    say = f"end.sendall({answer}); end.recv(1 << 20); time.sleep(60)"
    process = Process(GROWTH, (sys.executable, "-c", TALK.format(say=say)))
    pool = Workers(1, GROWTH, start=lambda _: process)
    assert failing(pool, "SELECT 1") == "died"
    assert not lives(process.pid)


LYING = """
import socket, struct
end = socket.socket(fileno=0)
end.sendall({answer})
end.recv(1)
"""


@pytest.mark.parametrize("answer", [
    b"\0\0\0\2" + b"\xff" * 8, b"\xff" * 12, b"\0\0\0\2" + b"\0" * 8 + b"no", b"\0\0\0\2" + b"\0" * 8 + b"[]",
    b"\0\1\0\0" + b"\0" * 8 + b"[" * 65_536, b"\0\0\0\15" + b"\0" * 8 + b'{"memory": {}',
    b"\0\0\0\16" + b"\0" * 8 + b'{"memory": {}}',
], ids=["large body", "large head", "no JSON", "no object", "deep", "broken", "no number"])  # fmt: skip
def test_what_a_process_says_is_not_trusted(answer: bytes) -> None:
    process = Process(GROWTH, (sys.executable, "-c", LYING.format(answer=answer)))
    pool = Workers(1, GROWTH, start=lambda _: process)
    assert failing(pool, "SELECT 1") == "died"
    assert not lives(process.pid)
