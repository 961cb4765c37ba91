"""A statement is stopped whatever it is at; what was released by then is stored, and free."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from support.services import real_service

from dpsql import pipeline
from dpsql.diagnostics.refusal import EngineFailed, Stopped, TooLarge
from dpsql.engines.engine import Value
from dpsql.engines.exact_rows import ExactRows
from dpsql.execution import has_ended, interrupt, interrupt_all
from dpsql.price.priced import PricedPlan
from dpsql.release.postprocess import PART, PostProcessor
from dpsql.reuse.pieces import pieces
from dpsql.service import Service

GROUPS = "WITH g AS (SELECT placed, COUNT(*) AS n FROM orders GROUP BY placed)"
SMALL = f"{GROUPS} SELECT SUM(n) FROM g"
ENDLESS = f"{GROUPS} SELECT SUM(a.n * b.n * c.n * d.n) FROM g AS a, g AS b, g AS c, g AS d"
ROWS = f"{GROUPS} SELECT a.n, b.n, c.n, d.n FROM g AS a, g AS b, g AS c, g AS d"
KEEP = "SET dpsql.empty_groups = 'keep'"
"""So that groups are as many as the policy lists, whatever their noise."""
LONG = 20.0


def _opened(policy: str = "") -> Service:
    return real_service("shop", "shop", lambda text: text + policy)


@pytest.fixture
def opened() -> Iterator[Service]:
    with _opened() as found:
        yield found


def _states(opened: Service) -> list[str]:
    return [r.content["state"] for r in opened.ledger.events() if r.hold]


def _interrupted(act: Callable[[int], None], seconds: float) -> None:
    """Do something to this thread from another one, soon."""
    thread = threading.get_ident()
    threading.Timer(seconds, lambda: act(thread)).start()


def test_a_deadline_in_post_processing_leaves_the_release_stored() -> None:
    with _opened("limits: {timeout_seconds: 2}\n") as opened:
        session = opened.session("analyst")
        session.execute(KEEP)
        session.prepare(ENDLESS)
        session.prepare(SMALL)
        assert not session.execute(SMALL).recalled
        begun = time.monotonic()
        with pytest.raises(Stopped, match=r"DP904.*asking again is free"):
            session.execute(ENDLESS)
        assert time.monotonic() - begun < LONG
        assert session.execute(SMALL).recalled
        assert _states(opened) == ["started", "committed"]


def test_an_interrupt_in_post_processing_leaves_the_release_stored(opened: Service) -> None:
    session = opened.session("analyst")
    session.execute(KEEP)
    session.prepare(ENDLESS)
    _interrupted(session.interrupt, 0.5)
    with pytest.raises(Stopped, match=r"stored: asking again is free"):
        session.execute(ENDLESS)
    assert _states(opened) == ["started", "committed"]
    assert session.execute(SMALL).recalled


def test_an_answer_of_too_many_rows_is_an_error_and_less_of_it_is_free(opened: Service) -> None:
    opened.share_postprocessor(PostProcessor(PART))
    session = opened.session("analyst")
    session.execute(KEEP)
    with pytest.raises(TooLarge, match=r"DP905.*LIMIT.*asking again is free"):
        session.execute(ROWS)
    reply = session.execute(f"{ROWS} LIMIT 10")
    assert reply.recalled
    assert reply.table.num_rows == 10
    assert _states(opened) == ["started", "committed"]


def test_a_public_table_of_too_many_rows_is_an_error(opened: Service) -> None:
    """It depends on public rows alone. (Here nothing has room.)"""
    opened.share_postprocessor(PostProcessor(1_000_000, parts=1))
    opened.tools.postprocessor._parts[0].room.most = 10
    with pytest.raises(TooLarge):
        opened.session("analyst").execute("SELECT * FROM countries")


def _slow(
    opened: Service, monkeypatch: pytest.MonkeyPatch, seconds: float, stop: Callable[[int], None]
) -> None:
    """A measurement is stopped when it has begun, takes so long, and fails like one of an engine."""
    real = opened._engine.measure

    def measure(sql: str, values: Mapping[str, Value]) -> ExactRows:
        stop(threading.get_ident())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if has_ended():
                raise EngineFailed("stopped")
            time.sleep(0.005)
        return real(sql, values)

    monkeypatch.setattr(opened._engine, "measure", measure)


def test_what_is_stopped_before_it_is_charged_is_not_charged(
    opened: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last moment is after the public rows have been read."""
    session, real = opened.session("analyst"), pipeline.read_public_tables

    def known(*args: Any) -> object:
        interrupt(threading.get_ident())
        return real(*args)

    monkeypatch.setattr(pipeline, "read_public_tables", known)
    with pytest.raises(Stopped) as stopped:
        session.execute(SMALL)
    assert "stored" not in str(stopped.value)
    assert _states(opened) == []


def test_a_stop_between_charge_and_release_keeps_the_charge_and_says_nothing_more(
    opened: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened.session("analyst")
    _slow(opened, monkeypatch, LONG, session.interrupt)
    with pytest.raises(EngineFailed):
        session.execute(SMALL)
    assert _states(opened) == ["started", "forfeited"]


def test_a_stop_while_a_value_is_looked_up_between_measurements_says_nothing_more(
    opened: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Post-processing that a later measurement waits for ends too, and nothing tells where it was."""
    session = opened.session("analyst")
    session.execute(KEEP)
    text = f"SELECT COUNT(*) FROM orders WHERE amount > ({ENDLESS.replace('SUM(', 'AVG(')}) / 1e9"
    session.prepare(text)
    _interrupted(session.interrupt, 0.5)
    begun = time.monotonic()
    with pytest.raises(EngineFailed):
        session.execute(text)
    assert time.monotonic() - begun < LONG
    assert _states(opened) == ["started", "forfeited"]


@pytest.mark.parametrize("latency", ["quantum(1s)", "fixed(1s)"])
def test_under_latency_a_client_that_cancels_learns_no_time(
    latency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled while the engine runs, it is stored as if it had not been: only the pace is known."""
    with _opened(f"latency: {latency}\n") as opened:
        session = opened.session("analyst")
        session.prepare(SMALL)
        _slow(opened, monkeypatch, 0.1, session.interrupt)
        begun = time.monotonic()
        with pytest.raises(Stopped, match="asking again is free"):  # nobody reads it any more
            session.execute(SMALL)
        assert 0.99 < time.monotonic() - begun < LONG
        assert _states(opened) == ["started", "committed"]


def test_a_fault_that_stops_at_once_would_tell_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with _opened("latency: quantum(300ms)\n") as opened:
        session = opened.session("analyst")
        _slow(opened, monkeypatch, 0.1, lambda thread: interrupt(thread, at_once=True))
        with pytest.raises(EngineFailed):
            session.execute(SMALL)
        assert _states(opened) == ["started", "forfeited"]


def test_nobody_waits_for_a_pace_when_the_service_ends() -> None:
    with _opened("latency: quantum(60s)\n") as opened:
        session = opened.session("analyst")
        _interrupted(lambda _: interrupt_all(), 0.4)
        begun = time.monotonic()
        session.execute("SELECT COUNT(*) FROM countries")
        assert time.monotonic() - begun < LONG


def test_who_waits_for_the_same_question_waits_no_longer_than_the_deadline() -> None:
    with _opened("limits: {timeout_seconds: 1}\n") as opened:
        session = opened.session("analyst")
        question = _families(opened, session.prepare(SMALL))
        leave = threading.Event()

        def hold() -> None:
            with opened.tools.single_flight.hold(question):
                leave.wait(LONG)

        first = threading.Thread(target=hold)
        first.start()
        begun = time.monotonic()
        with pytest.raises(Stopped):
            session.execute(SMALL)
        assert time.monotonic() - begun < LONG
        leave.set()
        first.join(LONG)
        assert _states(opened) == []


def _families(opened: Service, priced: PricedPlan) -> tuple[str, ...]:
    return tuple(piece.family for piece in pieces(priced, opened.policy.answers_key))
