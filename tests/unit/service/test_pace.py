"""Answers leave at multiples of the policy's time, whatever they did in between."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from fractions import Fraction

import pytest
from support.services import real_service, service

from dpsql import pipeline
from dpsql.diagnostics.refusal import EngineFailed, Stopped
from dpsql.engines.engine import Value
from dpsql.engines.exact_rows import ExactRows
from dpsql.execution import execution, on_released_values
from dpsql.policy.model import Latency
from dpsql.reuse.single_flight import SingleFlight
from dpsql.service import Service
from dpsql.service.pace import Pace

LONG = 60.0


def _held(latency: Latency | None, took: float) -> float:
    """How long something that took so long is held back."""
    times, slept = iter([10.0, 10.0 + took]), [0.0]
    with Pace(latency, lambda: next(times), slept.append).kept():
        pass
    return slept[-1]


@pytest.mark.parametrize(("took", "held"), [(0.01, 0.04), (0.051, 0.049), (0.26, 0.04)])
def test_what_is_ready_waits_for_the_next_multiple(took: float, held: float) -> None:
    assert _held(Latency(0.05), took) == pytest.approx(held, abs=1e-6)
    assert _held(None, took) == 0


def test_errors_wait_too() -> None:
    slept: list[float] = []
    with pytest.raises(KeyError), Pace(Latency(5), sleep=slept.append).kept():
        raise KeyError
    assert slept[0] > 4


@pytest.mark.parametrize("text", ["quantum(300ms)", "fixed(2s)", "off"])
def test_a_policy_says_when_answers_leave(text: str) -> None:
    with service("shop", "shop", lambda t: t + f"latency: {text}\n") as opened:
        session = opened.session("analyst")
        for sql in (
            "SELECT COUNT(*) FROM orders WHERE customer_id = 5",
            "SELECT COUNT(*) FROM orders WHERE customer_id = 99999",
        ):
            begun = time.monotonic()
            session.execute(sql)
            took = time.monotonic() - begun
            step = {"q": 0.3, "f": 2.0, "o": 0.0}[text[0]]
            assert took >= step
        seconds = 2 if text[0] == "f" else 300
        assert opened.policy.limits.timeout_seconds == seconds


def test_a_fixed_time_stops_the_engine_and_keeps_the_charge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with service("shop", "shop", lambda t: t + "latency: fixed(1s)\n") as opened:
        engine = opened._engine
        real = engine.measure
        endless = "SELECT sum(a.range + b.range) FROM range(1000000) a, range(1000000) b"
        monkeypatch.setattr(engine, "measure", lambda *_: real(endless, {}))
        begun = time.monotonic()
        with pytest.raises(EngineFailed):
            opened.session("analyst").execute("SELECT COUNT(*) FROM orders")
        assert 0.9 < time.monotonic() - begun < 30
        assert opened.ledger.charges[0].epsilon == Fraction(1, 10)  # type: ignore[attr-defined]


def test_all_phases_of_a_question_have_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes less than the fixed time, both take more: the second fails, and both are paid for."""
    question = "SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)"
    with service("shop", "shop", lambda t: t + "latency: fixed(60s)\n") as opened:
        opened.pace = Pace(None)
        session, engine, late, done = opened.session("analyst"), opened._engine, [0.0], []
        real, now = engine.measure, time.monotonic

        def slow(sql: str, values: Mapping[str, Value]) -> ExactRows:
            late[0] += 40
            found = real(sql, values)
            done.append(sql)
            return found

        monkeypatch.setattr(engine, "measure", slow)
        monkeypatch.setattr(time, "monotonic", lambda: now() + late[0])
        session.execute("SELECT COUNT(*) FROM visits")
        assert len(done) == 1
        with pytest.raises(EngineFailed):
            session.execute(question)
        assert len(done) == 2
        charges = opened.ledger.charges  # type: ignore[attr-defined]
        assert [c.epsilon for c in charges] == [Fraction(1, 10)] * 2


def _seen_meanwhile(opened: Service, text: str, setting: str = "") -> tuple[set[str], bool]:
    """What another session sees while a question waits for its multiple."""
    asking, other = opened.session("analyst"), opened.session("analyst")
    for session in (asking, other):
        if setting:
            session.execute(setting)
    waiting, over = threading.Event(), threading.Event()

    def sleep(_: float) -> None:
        waiting.set()
        over.wait(LONG)

    opened.pace = Pace(opened.policy.latency, sleep=sleep)
    thread = threading.Thread(target=asking.execute, args=(text,))
    thread.start()
    try:
        assert waiting.wait(LONG)
        stored = "it costs nothing" in other.explain(text)
        return {r.content["state"] for r in opened.ledger.events() if r.hold}, stored
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("latency", ["quantum(60s)", "fixed(60s)"])
@pytest.mark.parametrize("setting", ["", "SET dpsql.search = on"])
def test_nobody_sees_elsewhere_that_something_is_measured(latency: str, setting: str) -> None:
    """The ledger is a table of analysts, and EXPLAIN says what is stored."""
    text = "SELECT SUM(amount) FROM orders"
    with real_service("shop", "shop", lambda t: f"{t}latency: {latency}\n") as opened:
        assert _seen_meanwhile(opened, text, setting) == ({"started"}, False)
        states = [r.content["state"] for r in opened.ledger.events() if r.hold]
        assert states.count("committed") == states.count("started") == (2 if setting else 1)
        session = opened.session("analyst")
        session.execute(setting or "SET dpsql.search = off")
        assert session.execute(text).recalled


def test_nobody_sees_elsewhere_that_something_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> ExactRows:
        raise EngineFailed("0")

    with real_service("shop", "shop", lambda t: t + "latency: quantum(60s)\n") as opened:
        monkeypatch.setattr(opened._engine, "measure", fail)
        monkeypatch.setattr(threading, "excepthook", lambda _: None)
        text = "SELECT SUM(amount) FROM orders"
        assert _seen_meanwhile(opened, text) == ({"started"}, False)
        states = [r.content["state"] for r in opened.ledger.events() if r.hold]
        assert states == ["started", "forfeited"]


def test_a_fault_that_notes_it_at_once_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "_note", lambda _, act: act())
    with real_service("shop", "shop", lambda t: t + "latency: fixed(60s)\n") as opened:
        found = _seen_meanwhile(opened, "SELECT SUM(amount) FROM orders")
        assert found == ({"started", "committed"}, True)


@pytest.mark.parametrize(("step", "waits"), [(1.0, True), (0.0, False)])
def test_who_waits_for_what_is_noted_at_its_time_has_more_than_its_own(
    step: float, *, waits: bool
) -> None:
    """Under ``fixed``; but it begins no measurement then."""
    single_flight, held, ended = SingleFlight(), threading.Event(), threading.Event()

    def hold() -> None:
        with single_flight.hold("a question"):
            held.set()
            ended.wait(LONG)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(LONG)
    threading.Timer(1.1, ended.set).start()
    with execution(1.0, step) as own, ExitStack() as stack:
        if not waits:
            stack.enter_context(pytest.raises(Stopped))
        with single_flight.hold("a question"):
            assert own.ended
            with on_released_values():
                own.check()
    thread.join()
