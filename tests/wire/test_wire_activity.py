"""Whom a session sees and stops: its own login's sessions, and nobody else's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import asyncpg
import psycopg
import pytest
from endpoint import PASSWORD, ROLE, Endpoint, endpoint, generous

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


@pytest.mark.parametrize("function", ["pg_cancel_backend", "pg_terminate_backend"])
def test_others_are_not_stopped(roles: Endpoint, function: str) -> None:
    with _connect(roles) as own, _connect(roles, user="viewer") as other:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must be a member of"):
            own.execute(f"SELECT {function}(%s)", (other.info.backend_pid,))
        everyone = f"SELECT {function}(x) FROM generate_series(1001, 1200) AS s(x)"
        with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.OperationalError)):
            own.execute(everyone)
        assert other.execute("SELECT 1").fetchone() == (1,)


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
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            one.execute("SELECT pg_terminate_backend(%s)", (numbers[2],))
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
