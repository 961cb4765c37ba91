"""Logins have their turn in a lane, and none of them occupies it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from support.waiting import wait_until

from dpsql.diagnostics.refusal import Stopped
from dpsql.execution import execution
from dpsql.serve.lanes import Closed, Job, Lane, TooBusy
from dpsql.serve.traffic import MOST_TOGETHER, Traffic


class Gate:
    """Jobs that begin, and go on until they are let go."""

    def __init__(self, lane: Lane) -> None:
        self.lane, self.begun, self._open = lane, list[str](), threading.Event()
        self._jobs: list[Job] = []

    def send(self, login: str, count: int = 1) -> list[Job]:
        def wait() -> None:
            self.begun.append(login)
            self._open.wait(20)

        sent = [self.lane.submit(Job(login, wait)) for _ in range(count)]
        self._jobs += sent
        return sent

    def let_go(self) -> None:
        self._open.set()
        for job in self._jobs:
            if not job.future.cancelled():
                job.future.result(20)


@contextlib.contextmanager
def _lane(threads: int, spare: int = 0, most_waiting: int | None = None) -> Iterator[Gate]:
    gate = Gate(Lane("test", threads, spare=spare, most_waiting=most_waiting))
    try:
        yield gate
    finally:
        gate.let_go()
        gate.lane.close()
        assert gate.lane.join(10)


def test_a_login_leaves_threads_for_others() -> None:
    with _lane(4, spare=2) as gate:
        gate.send("hostile", 20)
        assert wait_until(lambda: len(gate.begun) == 2)
        gate.send("ann")
        gate.send("bob")
        assert wait_until(lambda: {"ann", "bob"} <= set(gate.begun))
        assert (gate.lane.state().busy, gate.lane.state().waiting) == (4, 18)


def test_where_none_is_spared_others_wait() -> None:
    """The fault that the test above would find."""
    with _lane(4, spare=0) as gate:
        gate.send("hostile", 20)
        assert wait_until(lambda: len(gate.begun) == 4)
        gate.send("ann")
        assert not _until_soon(lambda: "ann" in gate.begun)


@pytest.mark.parametrize("name", ["data", "catalog"])
def test_a_few_logins_with_much_work_leave_threads_for_others(name: str) -> None:
    """One of them begins five statements, the others one each: a person may have several log-ins."""
    gate = Gate(getattr(Traffic(), name))
    try:
        gate.send("hostile 1", 20)
        assert wait_until(lambda: len(gate.begun) == MOST_TOGETHER)
        for number in range(2, 9):
            gate.send(f"hostile {number}", 20)
        assert wait_until(lambda: len(gate.begun) == MOST_TOGETHER + 7)
        gate.send("ann")
        assert wait_until(lambda: "ann" in gate.begun)
    finally:
        gate.lane.close()
        gate.let_go()
        assert gate.lane.join(10)


def _until_soon(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + 0.2
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    return true()


def _order(one_queue: bool) -> list[str]:
    """In which order one thread takes what three logins have sent."""
    lane, order, go = Lane("test", 1), list[str](), threading.Event()
    first = lane.submit(Job("first", lambda: go.wait(10)))
    jobs = []
    for login, count in (("hostile", 6), ("ann", 2), ("bob", 1)):
        key = "all" if one_queue else login
        jobs += [
            lane.submit(Job(key, lambda login=login: order.append(login)))  # type: ignore[misc]
            for _ in range(count)
        ]
    go.set()
    for job in (first, *jobs):
        job.future.result(10)
    lane.close()
    assert lane.join(10)
    return order


def test_logins_have_their_turn() -> None:
    assert _order(one_queue=False)[:5] == ["hostile", "ann", "bob", "hostile", "ann"]
    assert _order(one_queue=True)[:6] == ["hostile"] * 6, "the fault: one queue for all"


def test_who_runs_the_least_is_next() -> None:
    with _lane(3) as gate:
        gate.send("hostile", 3)
        assert wait_until(lambda: len(gate.begun) == 3)
        ended = threading.Event()
        gate.send("hostile", 2)
        gate.lane.submit(Job("ann", ended.set))
        gate.let_go()
        assert ended.wait(10)


def test_so_many_may_wait() -> None:
    with _lane(1, most_waiting=2) as gate:
        (running,) = gate.send("ann")
        assert wait_until(lambda: bool(gate.begun))
        waiting = gate.send("ann", 2)
        with pytest.raises(TooBusy):
            gate.send("ann")
        gate.send("bob", 2)
        assert waiting[0].stop(), "it never begins"
        gate.send("ann")
        assert not running.stop()
        assert gate.lane.state().waiting == 4


def test_a_job_that_waits_is_older_by_the_moment() -> None:
    with _lane(1) as gate:
        gate.send("ann", 2)
        assert wait_until(lambda: gate.lane.state().oldest_seconds > 0.01)


def test_a_lane_that_is_closed_begins_nothing() -> None:
    with _lane(1) as gate:
        (running,) = gate.send("ann")
        assert wait_until(lambda: bool(gate.begun))
        (waiting,) = gate.send("ann")
        gate.lane.close()
        assert waiting.future.cancelled()
        assert not gate.lane.join(0.01)
        with pytest.raises(Closed):
            gate.send("ann")
        assert not running.future.done()


def test_what_goes_wrong_is_told() -> None:
    lane = Lane("test", 1)
    job = lane.submit(Job("ann", lambda: 1 // 0))
    with pytest.raises(ZeroDivisionError):
        job.future.result(10)
    assert lane.submit(Job("ann", lambda: 7)).future.result(10) == 7, "its thread goes on"
    lane.close()


def test_only_the_thread_of_a_job_is_interrupted() -> None:
    told: list[int] = []
    go, lane = threading.Event(), Lane("test", 1)
    job = lane.submit(Job("ann", lambda: (go.wait(10), threading.get_ident())[1], told.append))
    assert wait_until(lambda: bool(job._thread))
    assert not job.stop()
    go.set()
    assert told == [job.future.result(10)]
    assert job.stop(), "it has ended"
    assert len(told) == 1
    lane.close()


def test_what_is_stopped_begins_no_execution_and_the_next_job_does() -> None:
    """A job may be stopped between two executions, or before its first: then nothing is charged."""
    go, lane, done = threading.Event(), Lane("test", 1), list[str]()

    def run(name: str) -> None:
        go.wait(10)
        with execution(60) as own:
            own.check()
            done.append(name)

    job = lane.submit(Job("ann", lambda: run("stopped")))
    assert wait_until(lambda: bool(job._thread))
    assert not job.stop()
    go.set()
    with pytest.raises(Stopped):
        job.future.result(10)
    lane.submit(Job("ann", lambda: run("next"))).future.result(10)
    assert done == ["next"]
    lane.close()
