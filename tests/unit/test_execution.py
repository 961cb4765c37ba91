"""What a thread does for one statement ends with its deadline, or when others end it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from dpsql import execution as module
from dpsql.diagnostics.refusal import Stopped, TooLarge
from dpsql.execution import (
    Room,
    check,
    execution,
    has_ended,
    interrupt,
    interrupt_all,
    rest,
    stoppable,
    take,
)

LONG = 5.0


def _within(seconds: float, act: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, act)
    timer.start()
    return timer


def _me(act: Callable[[int], None], seconds: float = 0.05) -> None:
    """Do something to this thread from another one."""
    thread = threading.get_ident()
    _within(seconds, lambda: act(thread))


def test_without_an_execution_nothing_is_bounded() -> None:
    check()
    take(10**15)
    rest(0.001)
    interrupt(threading.get_ident())
    assert not has_ended()
    with stoppable(lambda: None):
        pass


def test_without_an_execution_what_runs_has_its_own_seconds() -> None:
    stopped = threading.Event()
    with stoppable(stopped.set, 0.02):
        assert stopped.wait(LONG)


def test_all_steps_have_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    times, watched = [100.0], list[float]()
    monkeypatch.setattr(time, "monotonic", lambda: times[0])
    monkeypatch.setattr(module._DEADLINES, "watch", lambda due, _: watched.append(due))
    with execution(10):
        for _ in range(2):
            check()
            with execution(10), stoppable(lambda: None, 7):
                times[0] += 6
        assert has_ended()
        for step in (check, lambda: take(1), lambda: stoppable(lambda: None).__enter__()):
            with pytest.raises(Stopped):
                step()
    check()
    assert watched == [107, 110]


def test_what_runs_is_stopped_at_the_deadline_and_again_until_it_ends() -> None:
    begun, times = time.monotonic(), list[float]()
    stopped = threading.Event()

    def stop() -> None:
        times.append(time.monotonic())
        if len(times) > 1:
            stopped.set()

    with execution(0.02), stoppable(stop):
        assert stopped.wait(LONG)
    assert times[0] - begun >= 0.02


def test_what_runs_is_stopped_by_an_interrupt_again_and_again() -> None:
    """Once is enough to say so, even before the engine has begun."""
    calls = list[int]()
    stopped = threading.Event()

    def stop() -> None:
        calls.append(1)
        if len(calls) > 1:
            stopped.set()

    with execution(60):
        _me(interrupt)
        with stoppable(stop):
            assert stopped.wait(LONG)
        with pytest.raises(Stopped):
            check()
    with execution(60):  # the next statement of the thread is another one
        check()


def test_all_are_stopped_at_once_when_the_service_ends() -> None:
    with execution(60, step=600):
        _within(0.02, interrupt_all)
        begun = time.monotonic()
        rest(LONG)
        assert time.monotonic() - begun < LONG / 2
        assert has_ended()


def test_under_a_pace_an_interrupt_tells_no_more_than_waiting_would() -> None:
    """It takes effect at the next multiple: what had ended by then has ended, as if nobody had asked."""
    with execution(60, step=1.0) as mine:
        begun = time.monotonic()
        _me(interrupt)
        stopped = threading.Event()
        with stoppable(stopped.set):
            time.sleep(0.2)
            assert not stopped.is_set()
            assert not has_ended()
            assert stopped.wait(LONG)
        assert 0.99 <= time.monotonic() - begun < LONG
        before = time.monotonic()
        mine.interrupt()
        rest(LONG)  # it does not wait for another multiple
        assert time.monotonic() - before < LONG / 2


def test_who_waits_for_the_next_multiple_is_not_kept_from_it() -> None:
    """The deadline does not end a wait: a multiple may be later."""
    with execution(0.01):
        begun = time.monotonic()
        rest(0.1)
        assert time.monotonic() - begun >= 0.1


def test_results_take_room_together_until_their_executions_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    room, results = Room(1_000), list[str]()

    def other() -> None:
        with execution(60, room=room):
            try:
                take(600)
            except TooLarge:
                results.append("none left")

    with execution(60, room=room):
        take(300)
        take(100, rows=10, columns=5)  # a row counts though its columns are narrow
        with pytest.raises(TooLarge):
            take(301)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert results == ["none left"]
    with execution(60, room=room):
        take(1_000)
    assert room.taken == 0


def test_room_that_others_have_is_waited_for() -> None:
    """A dashboard asks several questions at once: none of them fails because of the others."""
    room, inside = Room(1_000), threading.Event()

    def other() -> None:
        with execution(60, room=room):
            take(900)
            inside.set()
            time.sleep(0.2)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(LONG)
    with execution(60, room=room):
        take(500)
        assert room.taken == 500
        with pytest.raises(TooLarge):
            take(501)  # nobody else has it: there is nothing to wait for
    with execution(0.05, room=room):
        room.taken = 1_000
        with pytest.raises(Stopped):
            take(500)
        room.taken = 0
    thread.join()
