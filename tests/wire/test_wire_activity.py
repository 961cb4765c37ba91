"""Whom a session sees and stops: its own login's sessions, and nobody else's."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator

import asyncpg
import psycopg
import pytest
from endpoint import PASSWORD, ROLE, Endpoint, endpoint, generous

from dpsql.serve.pgwire.crowd import Place

ACTIVITY = "SELECT pid, query FROM pg_stat_activity"


def _granting(text: str) -> str:
    """``viewer`` may become the analyst, whose log-in is somebody else's."""
    return generous(text) + (
        f"  viewer:\n    password: {PASSWORD}\n    epsilon: 9\n    delta: 1e-6\n"
        "    may_become: [analyst, pure]\n"
    )


@pytest.fixture(scope="module")
def roles() -> Iterator[Endpoint]:
    with endpoint(_granting) as found:
        yield found


def _connect(where: Endpoint, **more: str) -> psycopg.Connection:
    return psycopg.connect(where.dsn(**more), autocommit=True)


def _listed(connection: psycopg.Connection) -> set[int]:
    return {pid for pid, _ in connection.execute(ACTIVITY).fetchall()}


def test_what_others_ask_is_not_shown(roles: Endpoint) -> None:
    with _connect(roles) as own, _connect(roles, user="viewer") as other:
        other.execute("SELECT 'a secret of the viewer'")
        seen = own.execute("SELECT a.* FROM pg_stat_activity AS a").fetchall()
        assert "secret" not in str(seen)
        assert other.info.backend_pid not in _listed(own)
        assert own.info.backend_pid not in _listed(other)


def _asked(connection: psycopg.Connection, function: str, process: int) -> tuple[object, list[str]]:
    """What is answered, and said beside it, without the number itself."""
    heard = list[str]()

    def hear(said: psycopg.errors.Diagnostic) -> None:
        heard.append(f"{said.severity} {said.sqlstate} {said.message_primary}")

    connection.add_notice_handler(hear)
    found = connection.execute(f"SELECT {function}(%s)", (process,)).fetchall()
    connection.remove_notice_handler(hear)
    return found, [words.replace(str(process), "N") for words in heard]


def _differences(roles: Endpoint, function: str) -> list[tuple[object, list[str]]]:
    """What is said of nobody's number, and of another's."""
    with _connect(roles) as own, _connect(roles, user="viewer") as other:
        one = other.info.backend_pid
        found = [_asked(own, function, n) for n in (11, one)]
        assert other.execute("SELECT 1").fetchone() == (1,)
        return found


@pytest.mark.parametrize("function", ["pg_cancel_backend", "pg_terminate_backend"])
def test_others_are_not_stopped_and_not_told_from_nobody(roles: Endpoint, function: str) -> None:
    nobody, other = _differences(roles, function)
    said = "WARNING 01000 PID N is not a PostgreSQL backend process"
    assert nobody == other == ([(False,)], [said])


def test_a_refusal_that_tells_others_would_be_noticed(
    roles: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(place: Place, process: int, *, ends: bool) -> bool:
        return any(s.process == process for s in place.crowd.seen())

    monkeypatch.setattr(Place, "stop", told)
    nobody, other = _differences(roles, "pg_cancel_backend")
    assert nobody != other


def test_numbers_of_sessions_tell_nothing_of_others(roles: Endpoint) -> None:
    """Each is drawn by itself: they neither count up nor are near each other."""
    with contextlib.ExitStack() as opened:
        numbers = [
            opened.enter_context(_connect(roles, user=user)).info.backend_pid
            for user in (ROLE, "viewer", ROLE, "viewer", ROLE, ROLE)
        ]
    assert len(set(numbers)) == len(numbers)
    assert all(0 < n < 2**31 for n in numbers)
    assert min(abs(a - b) for a, b in itertools.combinations(numbers, 2)) > 100


def test_no_two_sessions_have_one_number(roles: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([5_001, 5_001, 5_001, 5_002])
    monkeypatch.setattr(roles.house, "process", lambda: next(drawn))
    with _connect(roles) as one, _connect(roles) as two:
        assert (one.info.backend_pid, two.info.backend_pid) == (5_001, 5_002)


def test_who_has_taken_a_role_sees_who_has_taken_the_same(roles: Endpoint) -> None:
    with (
        _connect(roles, user="viewer") as plain,
        _connect(roles, user="viewer") as one,
        _connect(roles, user="viewer") as two,
        _connect(roles, user="analyst") as other,
    ):
        one.execute("SET ROLE pure")
        two.execute("SET ROLE analyst")
        numbers = [c.info.backend_pid for c in (plain, one, two)]
        assert _listed(plain) == set(numbers)
        assert _listed(one) == {numbers[1]}
        assert _listed(two) == {numbers[2]}
        assert _listed(other) == {other.info.backend_pid}
        stopped = one.execute("SELECT pg_terminate_backend(%s)", (numbers[2],)).fetchone()
        assert stopped == (False,)
        assert plain.execute("SELECT pg_terminate_backend(%s, 100)", (numbers[2],)).fetchone() == (
            True,
        )
        with pytest.raises(psycopg.errors.AdminShutdown):
            two.execute("SELECT 1")


def test_ending_a_session_stops_the_engine_and_keeps_the_charge(
    roles: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = roles.service._engine
    measure, begun, ended = engine.measure, threading.Event(), threading.Event()

    def endless(sql: str, parameters: object) -> object:
        begun.set()
        try:
            return measure("SELECT count(*) AS p0 FROM range(100000000000) AS r(i)", {})
        finally:
            ended.set()

    monkeypatch.setattr(engine, "measure", endless)
    before = roles.spent
    with _connect(roles) as own:
        busy = _connect(roles)
        busy.pgconn.send_query(b"SELECT count(*) FROM visits WHERE seconds > 987")
        busy.pgconn.flush()
        assert begun.wait(5)
        own.execute("SELECT pg_terminate_backend(%s)", (busy.info.backend_pid,))
        assert ended.wait(5)
        busy.close()
    assert roles.spent == pytest.approx(before + 0.1)


def test_a_statement_is_shown_up_to_a_length(roles: Endpoint) -> None:
    with _connect(roles) as own:
        found = own.execute(f"{ACTIVITY} -- {'x' * 3000}").fetchall()
        assert [len(text) for _, text in found] == [1024]


def test_describing_stops_nobody(roles: Endpoint) -> None:
    async def described(process: int) -> list[str]:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=roles.port, user=ROLE, password=PASSWORD, database="shop"
        )
        ready = await connection.prepare(f"SELECT pg_terminate_backend({process}) AS done")
        found = [a.name for a in ready.get_attributes()]
        await connection.close()
        return found

    with _connect(roles) as other:
        assert asyncio.run(described(other.info.backend_pid)) == ["done"]
        assert other.execute("SELECT 1").fetchone() == (1,)
