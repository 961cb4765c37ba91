"""A process for catalog queries, tried inside this one: what it hears and says, and what it may take."""

from __future__ import annotations

import os
import pickle
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dpsql.engines.catalog import limits, worker
from dpsql.engines.catalog.content import Bounds, Content
from dpsql.engines.catalog.frames import Channel, Closed
from dpsql.engines.catalog.worker import MOST_CONTENTS, Worker
from dpsql.engines.duckdb.allowlist import OPERATORS, Listing

NONE = frozenset[str]()
CONTENT = Content((), {}, (), Listing(
    frozenset(), OPERATORS | {"pgx_set", "pgx_stop", "count", "count_star"},
    frozenset({"generate_series"}), NONE, frozenset({"varchar"}),
))  # fmt: skip
ENDLESS = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t"


class Parent:
    """The other end of a worker's socket."""

    def __init__(self, growth: int) -> None:
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        self.ended = threading.Event()
        self.worker = Worker(Channel(theirs), growth)
        self.thread = threading.Thread(target=self.worker.serve, args=(lambda _: self.ended.set(),))
        self.thread.start()
        self.number = 0

    def close(self) -> None:
        """As when a parent ends: the worker hears it."""
        self.channel.send({"do": "end"})
        self.thread.join(10)
        self.channel.close()
        assert self.ended.wait(10)
        self.worker._channel.close()

    def make(self, content: Content) -> dict[str, Any]:
        self.channel.send({"do": "make", "number": content.number}, pickle.dumps(content))
        return self.channel.receive(0)[0]

    def send(self, sql: str, content: Content, *, effects: bool = False) -> None:
        self.number += 1
        head = {"do": "run", "number": self.number, "content": content.number, "effects": effects}
        self.channel.send(head, pickle.dumps((sql, (), {}, Bounds())))

    def answer(self) -> tuple[dict[str, Any], bytes]:
        rows = b""
        while True:
            head, part = self.channel.receive(1 << 24)
            rows += part
            if "part" not in head:
                return head, rows

    def run(self, sql: str, content: Content) -> tuple[dict[str, Any], bytes]:
        self.send(sql, content)
        return self.answer()


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a limit was set: this process goes on without one."""
    found = list[int]()

    def bound(growth: int) -> bool:
        found.append(growth)
        return True

    monkeypatch.setattr(limits, "limit_growth", bound)
    monkeypatch.setattr(limits, "lift_limits", lambda: None)
    monkeypatch.setattr(limits, "give_way", lambda: None)
    return found


@pytest.fixture
def parent(bounded: list[int]) -> Iterator[Parent]:
    made = Parent(1_000_000_000)
    assert made.channel.receive(0)[0] == {"ready": os.getpid()}
    yield made
    made.close()


def test_orders_are_carried_out(parent: Parent, bounded: list[int]) -> None:
    made = parent.make(CONTENT)
    assert (made["exhausted"], made["memory"] > 1_000_000) == (False, True)
    head, rows = parent.run("SELECT x FROM generate_series(1, 300000) s(x)", CONTENT)
    assert head["columns"] == [["x", "BIGINT"]]
    assert pa.ipc.open_stream(rows).read_all().num_rows == 300_000
    assert parent.run("SELECT nope()", CONTENT)[0]["failed"] == "function"
    assert bounded == [1_000_000_000] * 2


def test_effects_are_asked_of_the_parent(parent: Parent) -> None:
    parent.make(CONTENT)
    sql = "SELECT pgx_stop(7, true), pgx_set('a', 'b', false)"
    parent.send(sql, CONTENT, effects=True)
    asked = dict[str, dict[str, Any]]()
    for done in (True, "c"):
        effect = parent.channel.receive(0)[0]
        asked[effect["effect"]] = effect
        parent.channel.send({"do": "reply", "done": done})
    assert asked["stop"] == {"effect": "stop", "process": 7, "ends": True}
    assert asked["set"] == {"effect": "set", "name": "a", "value": "b", "local": False}
    (row,) = pa.ipc.open_stream(parent.answer()[1]).read_all().to_pylist()
    assert list(row.values()) == [True, "c"]
    parent.send(sql, CONTENT, effects=True)
    parent.channel.receive(0)
    parent.channel.send({"do": "reply", "refused": True})
    assert "failed" in parent.answer()[0]


def test_what_runs_is_interrupted(parent: Parent) -> None:
    parent.make(CONTENT)
    parent.channel.send({"do": "interrupt", "number": 1})  # nothing runs yet
    parent.send(ENDLESS, CONTENT)
    stop = threading.Event()

    def interrupt() -> None:
        while not stop.wait(0.05):
            parent.channel.send({"do": "interrupt", "number": 1})

    thread = threading.Thread(target=interrupt)
    thread.start()
    assert parent.answer()[0]["failed"] == "interrupted"
    stop.set()
    thread.join()


def test_the_catalog_that_was_asked_for_longest_ago_goes(parent: Parent) -> None:
    contents = [Content((), {}, (), CONTENT.listing) for _ in range(MOST_CONTENTS + 1)]
    for content in contents[:-1]:
        parent.make(content)
    parent.run("SELECT 1", contents[0])
    parent.make(contents[-1])
    assert set(parent.worker._databases) == {contents[0].number, *(c.number for c in contents[2:])}


def test_an_engine_that_can_get_out_is_told_of(
    bounded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpsql.engines.duckdb import lockdown

    monkeypatch.setattr(lockdown, "SETTINGS", {"lock_configuration": "true"})
    parent = Parent(1_000_000)
    assert "nothing is served" in parent.channel.receive(0)[0]["broken"]
    parent.close()


def test_a_process_that_has_taken_too_much_is_exhausted(
    parent: Parent, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent.make(CONTENT)
    monkeypatch.setattr(limits, "has_room", lambda size: False)
    assert parent.run("SELECT 1", CONTENT)[0]["exhausted"] is True


def test_where_the_system_has_no_such_limit_the_process_watches_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = list[int]()
    peaks = iter([100, 150, 201])
    monkeypatch.setattr(limits, "peak", lambda: next(peaks))
    limits.watch(100, ended.append, pause=0.0)
    end = time.monotonic() + 10
    while not ended and time.monotonic() < end:
        time.sleep(0.01)
    assert ended == [limits.EXCEEDED]


def test_a_worker_watches_where_no_limit_is_kept(
    bounded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = list[int]()
    monkeypatch.setattr(limits, "limit_growth", lambda growth: False)
    monkeypatch.setattr(limits, "watch", watched.append)
    parent = Parent(5_000)
    parent.channel.receive(0)
    assert watched == [5_000]
    parent.close()


BOUND = """
import mmap, resource, signal, sys
sys.path[:0] = {path!r}
from dpsql.engines.catalog import limits
limits.obey_parent()
limits.give_way()
for _ in range(2):
    assert limits.limit_growth(50_000_000)
    assert limits.has_room(49_000_000) and not limits.has_room(52_000_000)
    try:
        with open({file!r}, "w") as file:
            file.write("x" * 100)
    except OSError:
        print("no file")
limits.lift_limits()
assert limits.has_room(200_000_000)
with open({file!r}, "w") as file:
    file.write("x" * 100)
assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="its limit is known to be kept")
def test_a_limit_of_memory_and_files_is_kept_and_taken_back(tmp_path: Path) -> None:
    script = BOUND.format(path=sys.path, file=str(tmp_path / "written"))
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("no file\n" * 2, "")


def test_a_hard_limit_of_the_system_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dict[int, tuple[int, int]]()
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (10, 1_000))
    monkeypatch.setattr(resource, "setrlimit", found.__setitem__)
    limits.lift_limits()
    assert found[resource.RLIMIT_DATA] == (1_000, 1_000)
    limits._limit(resource.RLIMIT_DATA, 5_000)
    assert found[resource.RLIMIT_DATA] == (1_000, 1_000)


def test_where_nothing_is_told_the_peak_stands_for_what_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(_: Path) -> str:
        raise OSError

    assert 0 < limits.present() <= limits.peak()
    monkeypatch.setattr(Path, "read_text", nothing)
    assert limits.present() == limits.peak()


@pytest.mark.parametrize("said", [b"\0\0\0\2" + b"\xff" * 8, b"\0\0\0\2" + b"\0" * 8 + b"no"])
def test_what_is_not_a_message_ends_the_talk(said: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(said)
        with pytest.raises(Closed):
            Channel(ours).receive(100)


def test_main_takes_its_socket_and_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    served = list[int]()
    monkeypatch.setattr(socket, "socket", lambda fileno: theirs)
    monkeypatch.setattr(limits, "obey_parent", lambda: None)
    monkeypatch.setattr(sys, "argv", ["worker", "77"])
    monkeypatch.setattr(Worker, "serve", lambda self: served.append(self._growth))
    worker.main()
    assert served == [77]
    ours.close()
    theirs.close()
