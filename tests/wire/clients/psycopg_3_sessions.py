"""psycopg 3: a role's sessions see one another, and may stop one another."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
from sides import Side, checks, state

check = checks("psycopg 3")
LONG = "SELECT count(*) FROM generate_series(1, 1000000000000) AS s(x)"


def _open(side: Side, **more: Any) -> psycopg.Connection:
    return psycopg.connect(side.dsn, autocommit=True, **more)


def _said(connection: psycopg.Connection) -> list[Any]:
    """Filled with what the server says beside its answers."""
    found: list[Any] = []
    connection.add_notice_handler(
        lambda d: found.append((d.severity, d.sqlstate, d.message_primary))
    )
    return found


@contextmanager
def _running(connection: psycopg.Connection) -> Iterator[Future[str]]:
    """While the connection asks for something long: the SQLSTATE that it will end with."""
    with ThreadPoolExecutor(1) as worker:
        ended = worker.submit(state, lambda: connection.execute(LONG))
        time.sleep(0.3)
        yield ended


@check
def a_session_knows_its_number(side: Side) -> Any:
    with _open(side) as c:
        return c.execute("SELECT pg_backend_pid()").fetchone() == (c.info.backend_pid,)


@check
def sessions_of_the_same_role_are_listed(side: Side) -> Any:
    sql = (
        "SELECT usename, datname, application_name, state, query, backend_type, leader_pid,"
        " backend_start <= query_start, state_change >= query_start, client_port > 0"
        " FROM pg_stat_activity WHERE usename = 'analyst' ORDER BY backend_start"
    )
    with (
        _open(side, application_name="first") as a,
        _open(side, application_name="second") as b,
        _open(side, application_name="third") as c,
    ):
        a.execute("BEGIN")
        a.execute("SELECT 1")
        b.execute("BEGIN")
        wrong = state(lambda: b.execute("SELECT nothing"))
        return wrong, c.execute(sql).fetchall()


@check
def a_session_cancels_another(side: Side) -> Any:
    with _open(side) as a, _open(side) as b, _running(a) as ended:
        found = b.execute("SELECT pg_cancel_backend(%s)", (a.info.backend_pid,)).fetchone()
        return found, ended.result(), a.execute("SELECT 2").fetchone()


@check
def a_session_ends_another(side: Side) -> Any:
    sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'them'"
    busy, resting = (_open(side, application_name="them") for _ in range(2))
    with busy, resting, _open(side) as c, _running(busy) as ended:
        found = c.execute(sql).fetchall()
        later = state(lambda: resting.execute("SELECT 1"))
        return found, ended.result(), later, c.execute("SELECT 2").fetchone()


@check
def a_session_stops_itself(side: Side) -> Any:
    with _open(side) as c:
        canceled = state(lambda: c.execute("SELECT pg_cancel_backend(pg_backend_pid())"))
        again = c.execute("SELECT 3").fetchone()
        ended = state(lambda: c.execute("SELECT pg_terminate_backend(pg_backend_pid())"))
        return canceled, again, ended, c.closed


@check
def nobody_is_stopped(side: Side) -> Any:
    with _open(side) as c:
        said = _said(c)
        missing = c.execute(
            "SELECT pg_cancel_backend(99999999), pg_terminate_backend(99999999)"
        ).fetchone()
        return missing, c.execute("SELECT pg_cancel_backend(NULL)").fetchone(), said


@check
def describing_stops_nobody(side: Side) -> Any:
    with _open(side) as a, _open(side) as b:
        number = a.info.backend_pid
        b.execute(f"PREPARE ends AS SELECT pg_terminate_backend({number})")
        b.execute(f"DECLARE c CURSOR WITH HOLD FOR SELECT pg_cancel_backend({number}) WHERE false")
        return a.execute("SELECT 4").fetchone()
