"""A statement ends with its client; what waited is never begun; over both faces and real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import psycopg
import pytest
from endpoint import ROLE, Endpoint, endpoint, generous
from support.waiting import wait_until
from talk import query

from dpsql.serve import users
from dpsql.serve.http.app import _login
from dpsql.serve.http.server import HttpServer
from dpsql.serve.lanes import Job
from dpsql.serve.traffic import Traffic
from dpsql.serve.users import User

ENDLESS = "SELECT count(*) AS p0 FROM range(100000000000) AS r(i)"
SQL = "SELECT count(*) FROM visits WHERE seconds > %d"


class Both:
    """Both faces of one service, whose engine never ends by itself."""

    def __init__(self, where: Endpoint, http: int, token: str) -> None:
        self.where, self.http, self.token = where, http, token
        self.begun, self.ended = threading.Semaphore(0), threading.Semaphore(0)
        engine, measure = where.service._engine, where.service._engine.measure
        self.endless = True

        def slow(sql: str, parameters: object) -> Any:
            if not self.endless:
                return measure(sql, parameters)  # type: ignore[arg-type]
            self.begun.release()
            try:
                return measure(ENDLESS, {})
            finally:
                self.ended.release()

        engine.measure = slow  # type: ignore[method-assign]

    @property
    def stopped(self) -> dict[str, int]:
        return self.where.server.traffic.gauges().stopped

    def request(self, number: int) -> bytes:
        body = json.dumps({"sql": SQL % number}).encode()
        return (
            f"POST /v1/query HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {self.token}\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        ).encode() + body


@pytest.fixture(scope="module")
def open_faces() -> Iterator[tuple[Endpoint, int, str]]:
    with endpoint(generous) as where:
        made, token = users.with_token("robot", ROLE)
        users.write(where.service.policy.front.users, [made])
        where.house.reload()
        server = HttpServer(where.house, "127.0.0.1", 0, None, where.server.traffic)
        where.server.beside.append(server)
        port = asyncio.run_coroutine_threadsafe(server.start(), where.loop).result(10)
        yield where, port, token


@pytest.fixture
def both(open_faces: tuple[Endpoint, int, str]) -> Iterator[Both]:
    where, port, token = open_faces
    engine = where.house.snapshot.service._engine
    found = Both(where, port, token)
    yield found
    del engine.measure  # type: ignore[attr-defined]
    assert wait_until(lambda: not where.server.traffic.data.state().busy)


@contextlib.contextmanager
def _wire(both: Both, number: int) -> Iterator[None]:
    connection = psycopg.connect(both.where.dsn(), autocommit=True)
    connection.pgconn.send_query((SQL % number).encode())
    try:
        yield
    finally:
        connection.close()


@contextlib.contextmanager
def _http(both: Both, number: int) -> Iterator[None]:
    with socket.create_connection(("127.0.0.1", both.http)) as sock:
        sock.sendall(both.request(number))
        yield


FACES = pytest.mark.parametrize("face", [_wire, _http], ids=["wire", "http"])


@FACES
def test_a_client_that_leaves_ends_its_statement(both: Both, face: Any) -> None:
    """It was charged, and stays so."""
    before, had = both.where.spent, both.stopped["disconnect"]
    with face(both, 7_000):
        assert both.begun.acquire(timeout=60)
    assert both.ended.acquire(timeout=15), "the engine has stopped"
    assert both.stopped["disconnect"] == had + 1
    assert both.where.spent == pytest.approx(before + 0.1)


@FACES
def test_without_it_the_engine_goes_on(
    both: Both, face: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault that the test above would find."""
    left: list[Job] = []
    monkeypatch.setattr(Traffic, "stop", lambda _, job, reason: left.append(job))
    with face(both, 7_100):
        assert both.begun.acquire(timeout=60)
    assert not both.ended.acquire(timeout=0.3)
    assert wait_until(lambda: bool(left))
    assert wait_until(left[0].stop)


@FACES
def test_what_waits_for_its_turn_is_not_begun_when_its_client_leaves(both: Both, face: Any) -> None:
    lane = both.where.server.traffic.data
    with contextlib.ExitStack() as stack:
        for number in range(lane.threads - lane.spare):
            stack.enter_context(face(both, 7_200 + number))
            assert both.begun.acquire(timeout=60)
        before = both.where.spent
        with face(both, 7_300):
            assert wait_until(lambda: lane.state().waiting == 1)
        assert wait_until(lambda: lane.state().waiting == 0)
    assert wait_until(lambda: not lane.state().busy)
    assert both.where.spent == before


def _many(both: Both, face: Any, number: int) -> Callable[[], None]:
    """A connection that has sent so much that nothing more is read of it; how it is left."""
    if face is _http:
        asked = socket.create_connection(("127.0.0.1", both.http))
        asked.sendall(both.request(number) + both.request(number + 1))
        return asked.close
    connection = psycopg.connect(both.where.dsn(sslmode="disable"), autocommit=True)
    own = both.where.server._room.keys[connection.info.backend_pid]
    with socket.socket(fileno=os.dup(connection.fileno())) as sock:
        sock.setblocking(True)
        sock.sendall(b"".join(query(SQL % (number + n)) for n in range(6_000)))
    assert wait_until(lambda: not own._reading)
    return connection.close


@FACES
def test_a_client_that_sent_more_than_is_read_and_left_is_noticed(both: Both, face: Any) -> None:
    """Nothing of the rest is begun, nor charged."""
    before = both.where.spent
    leave = _many(both, face, 8_000)
    assert both.begun.acquire(timeout=60)
    leave()
    assert both.ended.acquire(timeout=60)
    assert not both.begun.acquire(timeout=0.3)
    assert both.where.spent == pytest.approx(before + 0.1)


def test_other_log_ins_are_answered_at_once(both: Both) -> None:
    """One fills what it may over the wire; another log-in, over HTTP, has an answer in time."""
    lane = both.where.server.traffic.data
    with contextlib.ExitStack() as stack:
        for number in range(lane.threads):
            stack.enter_context(_wire(both, 7_400 + number))
        for _ in range(lane.threads - lane.spare):
            assert both.begun.acquire(timeout=60)
        assert wait_until(lambda: lane.state().waiting == lane.spare)
        both.endless = False
        said = httpx.post(
            f"http://127.0.0.1:{both.http}/v1/query", json={"sql": SQL % 7_500},
            headers={"Authorization": f"Bearer {both.token}"}, timeout=30,
        )  # fmt: skip
        assert said.status_code == 200, "though none of the others has ended"
        assert wait_until(lambda: lane.state().busy == lane.threads - lane.spare)


def test_a_log_in_has_one_queue_over_both_faces(both: Both) -> None:
    house = both.where.house
    user = house.snapshot.users[ROLE]
    assert both.where.server._room.login(house, ROLE) == _login(house.snapshot, user)
    other = User("robot", ROLE, None)
    assert _login(house.snapshot, other) != _login(house.snapshot, user), (
        "a log-in, not the role it takes"
    )


def test_too_much_that_waits_is_refused(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """And costs nothing."""
    lane = both.where.server.traffic.data
    monkeypatch.setattr(lane, "most_waiting", 1)
    for face in (_wire, _http):
        with contextlib.ExitStack() as stack:
            for number in range(lane.threads - lane.spare):
                stack.enter_context(face(both, 7_600 + number))
                assert both.begun.acquire(timeout=60)
            stack.enter_context(face(both, 7_700))
            assert wait_until(lambda: lane.state().waiting == 1)
            before = both.where.spent
            if face is _wire:
                with (
                    psycopg.connect(both.where.dsn(), autocommit=True) as late,
                    pytest.raises(psycopg.Error, match="wait for their turn") as refused,
                ):
                    late.execute(SQL % 7_800)
                assert refused.value.sqlstate == "53300"
            else:
                said = httpx.post(
                    f"http://127.0.0.1:{both.http}/v1/query", json={"sql": SQL % 7_800},
                    headers={"Authorization": f"Bearer {both.token}"},
                )  # fmt: skip
                assert said.status_code == 429
                assert "wait for their turn" in said.json()["headline"]
            assert both.where.spent == before
        assert wait_until(lambda: not lane.state().busy)
