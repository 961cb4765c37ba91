"""Answers leave at multiples of the policy's time, whatever they did in between."""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction

import pytest
from support.services import service

from dpsql.diagnostics.refusal import EngineFailed
from dpsql.engines.engine import Value
from dpsql.engines.exact_rows import ExactRows
from dpsql.policy.model import Latency
from dpsql.service.pace import Pace


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


@pytest.mark.parametrize("text", ["quantum(300ms)", "fixed(1s)", "off"])
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
            step = {"q": 0.3, "f": 1.0, "o": 0.0}[text[0]]
            assert took >= step
        seconds = 1 if text[0] == "f" else 300
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
        assert 0.9 < time.monotonic() - begun < 3
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
