"""Statements that run too long are stopped, others never are."""

from __future__ import annotations

import threading
import time

import pytest

from dpsql.engines.deadlines import AGAIN, Deadlines

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


def test_what_is_done_together_has_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times, deadlines = [100.0], Deadlines()
    monkeypatch.setattr(time, "monotonic", lambda: times[0])
    watched: list[float] = []
    monkeypatch.setattr(deadlines, "_watch", lambda due, _: watched.append(due))
    with deadlines.together(10):
        for _ in range(2):
            with deadlines.together(10), deadlines.within(7, lambda: None):
                times[0] += 6
        with pytest.raises(TimeoutError), deadlines.within(7, lambda: None):
            raise AssertionError("it has no time left")
    with deadlines.within(7, lambda: None):
        pass
    assert watched == [107, 110, 119]


def test_what_ends_in_time_is_not_stopped() -> None:
    stopped, last, deadlines = threading.Event(), threading.Event(), Deadlines()
    with deadlines.within(0.03, stopped.set):
        pass
    with deadlines.within(0.06, last.set):
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
