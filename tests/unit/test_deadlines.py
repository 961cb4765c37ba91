"""Statements that run too long are stopped, others never are."""

from __future__ import annotations

import threading
import time

import pytest

from dpsql.deadlines import AGAIN, Deadlines

LONG = 5.0


def test_what_takes_too_long_is_stopped_until_it_ends() -> None:
    """A statement that has not begun when it is stopped is stopped once it has."""
    stopped, times = threading.Event(), []

    def stop() -> None:
        times.append(time.monotonic())
        if len(times) > 1:
            stopped.set()

    start, deadlines = time.monotonic(), Deadlines()
    with deadlines.within(0.02, stop):
        assert stopped.wait(LONG)
    found = len(times)
    time.sleep(3 * AGAIN)
    assert len(times) == found
    assert times[0] - start >= 0.02


def test_what_ends_in_time_is_not_stopped() -> None:
    stopped, last, deadlines = threading.Event(), threading.Event(), Deadlines()
    with deadlines.within(1.0, stopped.set):
        pass
    with deadlines.within(1.1, last.set):
        assert last.wait(LONG)
    assert not stopped.is_set()


def test_a_shorter_deadline_is_kept_while_a_longer_one_is_waited_for() -> None:
    long, short, deadlines = threading.Event(), threading.Event(), Deadlines()
    with deadlines.within(60, long.set):
        with deadlines.within(0.02, short.set):
            assert short.wait(LONG)
        assert not long.is_set()
    deadlines.close()


def test_no_thread_is_left_behind() -> None:
    deadlines = Deadlines()
    with deadlines.within(60, lambda: None):
        first = deadlines._thread
        assert first is not None
        assert first.is_alive()
    deadlines.close()
    first.join(LONG)
    assert not first.is_alive()
    with deadlines.within(0.001, lambda: None):  # and it starts again
        second = deadlines._thread
        assert second is not None
        assert second is not first


def test_one_that_cannot_be_stopped_keeps_no_other_from_being_stopped() -> None:
    """An engine that is closed meanwhile raises when it is interrupted."""
    failed, stopped, deadlines = threading.Event(), threading.Event(), Deadlines()

    def fail() -> None:
        failed.set()
        raise RuntimeError

    with deadlines.within(0.01, fail):
        assert failed.wait(LONG)
        with deadlines.within(0.03, stopped.set):
            assert stopped.wait(LONG)


def test_a_deadline_may_be_never() -> None:
    stopped, deadlines = threading.Event(), Deadlines()
    number = deadlines.watch(float("inf"), stopped.set)
    time.sleep(0.02)
    deadlines.sooner(number, time.monotonic())
    assert stopped.wait(LONG)
    deadlines.forget(number)


def test_a_clock_that_stood_still_for_a_while_keeps_nothing_from_being_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked, stopped, deadlines = threading.Event(), threading.Event(), Deadlines()

    now = time.monotonic()

    def still() -> float:
        looked.set()
        return now - 1_000

    with deadlines.within(60, lambda: None):
        monkeypatch.setattr(time, "monotonic", still)
        number = deadlines.watch(now - 1, lambda: None)
        assert looked.wait(LONG)
        monkeypatch.undo()
        with deadlines.within(0.01, stopped.set):
            assert stopped.wait(LONG)
        deadlines.forget(number)


def test_where_no_thread_can_be_started_the_next_one_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    stopped, deadlines = threading.Event(), Deadlines()
    monkeypatch.setattr(threading.Thread, "start", none_left)
    with pytest.raises(RuntimeError):
        deadlines.watch(0.0, lambda: None)
    monkeypatch.undo()
    with deadlines.within(0.01, stopped.set):
        assert stopped.wait(LONG)
