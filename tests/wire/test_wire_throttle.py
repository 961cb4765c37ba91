"""Failed log-ins: whoever guesses is slow, nobody keeps others out, and no delay tells anything."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from callers import Caller
from endpoint import PASSWORD, ROLE, Endpoint, endpoint
from talk import Client, FixedHouse, errors
from test_http import World

from dpsql.diagnostics.operation import events
from dpsql.diagnostics.operation.events import LoginFailed
from dpsql.serve import throttle as throttled
from dpsql.serve.http.app import Face
from dpsql.serve.pgwire.asking import Wait
from dpsql.serve.pgwire.errors import PASSWORD as WRONG
from dpsql.serve.pgwire.errors import Fatal
from dpsql.serve.pgwire.listener import Limits
from dpsql.serve.pgwire.machine import Machine
from dpsql.serve.pgwire.messages import Secret
from dpsql.serve.throttle import PAIR, WAITING, Attempt, Throttle, TooMany
from dpsql.serve.traffic import Traffic

HERE, ELSEWHERE = ("192.0.2.1", 5000), ("198.51.100.1", 5000)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def throttle(clock: Clock) -> Throttle:
    return Throttle(clock)


def _fail(throttle: Throttle, times: int, peer: object = HERE, name: str = "ann") -> None:
    for _ in range(times):
        throttle.attempt(peer, name).fail()


def test_a_pair_waits_longer_each_time_and_never_for_ever(throttle: Throttle) -> None:
    waits = []
    for _ in range(8):
        waits.append(throttle.attempt(HERE, "ann").delay)
        _fail(throttle, 1)
    assert waits == [0.0, 0.3, 0.6, 1.2, 2.4, 4.8, 9.6, 10.0]
    _fail(throttle, 1_000)
    assert throttle.attempt(HERE, "ann").delay == 10.0


def test_a_success_clears_the_pair_alone(throttle: Throttle) -> None:
    _fail(throttle, 50)
    _fail(throttle, 50, ELSEWHERE)
    throttle.attempt(HERE, "ann").succeed()
    assert throttle.attempt(HERE, "ann").delay == 1.0, "the name is still being guessed"
    assert throttle.attempt(ELSEWHERE, "ann").delay == 10.0


def test_nobody_keeps_the_owner_of_a_name_out_from_elsewhere(throttle: Throttle) -> None:
    for i in range(2_000):
        _fail(throttle, 1, (f"198.51.{i % 256}.{i // 256}", i))
    assert throttle.attempt(HERE, "ann").delay == 1.0
    assert [throttle.attempt(HERE, "ann").queue() for _ in range(100)] == [1.0] * 100


def test_nobody_keeps_an_office_out_from_behind_its_address(throttle: Throttle) -> None:
    for i in range(2_000):
        _fail(throttle, 1, name=f"name{i}")
    assert throttle.attempt(HERE, "ann").delay == 1.0
    assert throttle.attempt(ELSEWHERE, "ann").delay == 0.0


def test_failures_are_forgotten(throttle: Throttle, clock: Clock) -> None:
    _fail(throttle, 50)
    clock.now += 61
    assert throttle.attempt(HERE, "bob").delay == throttle.attempt(ELSEWHERE, "ann").delay == 0.0
    assert throttle.attempt(HERE, "ann").delay == 10.0
    clock.now += 900
    assert throttle.attempt(HERE, "ann").delay == 0.0


def test_what_is_remembered_is_bounded(throttle: Throttle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever failed longest ago is forgotten; a name is kept as so many bytes, however long it is."""
    monkeypatch.setattr(throttled, "ENTRIES", 100)
    _fail(throttle, 9)
    for i in range(2 * throttled.ENTRIES):
        _fail(throttle, 1, (f"198.51.{i % 256}.{i // 256}", i), f"name{i}" * 500)
    assert throttle.entries == 3 * throttled.ENTRIES
    assert throttle.attempt(HERE, "ann").delay == 0.0
    keys = throttle.pairs._entries
    assert {len(key) for key in keys} == {32}


def test_an_address_is_a_network_of_one_subscriber(throttle: Throttle) -> None:
    _fail(throttle, 3, ("2001:db8::1", 5000, 0, 0))
    assert throttle.attempt(("2001:db8::ffff:1:2:3", 6000, 0, 0), "ann").delay == 1.2
    assert throttle.attempt(("2001:db8:0:1::1", 5000, 0, 0), "ann").delay == 0.08


def test_few_wait_at_once_and_whoever_leaves_keeps_the_place(
    throttle: Throttle, clock: Clock
) -> None:
    _fail(throttle, 20)
    assert [throttle.attempt(HERE, "ann").queue() for _ in range(WAITING)] == [10.0] * WAITING
    clock.now += 9
    with pytest.raises(TooMany) as full:
        throttle.attempt(HERE, "ann").queue()
    assert full.value.seconds == 1.0
    clock.now += 1
    assert throttle.attempt(HERE, "ann").queue() == 10.0


def _waits(client: Client, name: str, password: str) -> tuple[list[float], list[str]]:
    """How long a try is not looked at, and how it ends."""
    waits: list[float] = []
    carry_out = Wait.perform

    def wait(self: Wait, backend: Any) -> None:
        waits.append(self.seconds)
        assert not client.machine.take()
        carry_out(self, backend)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Wait, "perform", wait)
        said = client.login(name, password)
    return waits, errors(said)


def test_no_delay_tells_names_or_passwords(shop: Endpoint, clock: Clock) -> None:
    """A known and an unknown name, a right and a wrong password: the same, before anything is said."""
    for password in (PASSWORD, "wrong"):
        for name in (ROLE, "nobody"):
            throttle = Throttle(clock)
            for expected in ([], [0.3], [0.6], [1.2]):
                client = Client(FixedHouse(shop.house))
                client.machine._attempt = lambda who, t=throttle: t.attempt(HERE, who)  # type: ignore[misc]
                waits, told = _waits(client, name, password)
                entered = name == ROLE and password == PASSWORD
                assert (waits, told) == ([] if entered else expected, [] if entered else ["28P01"])
            _fail(throttle, 4, name=name)
            client = Client(FixedHouse(shop.house))
            client.machine._attempt = lambda who, t=throttle: t.attempt(HERE, who)  # type: ignore[misc]
            again = _waits(client, name, password)[0]
            assert again == ([2.4] if entered else [10.0])


def _guess(where: Endpoint, seconds: float, threads: int, **more: str) -> Counter[str]:
    """What so many clients are told that guess all the time."""
    told: Counter[str] = Counter()
    end = time.monotonic() + seconds

    def guess() -> None:
        while time.monotonic() < end:
            try:
                psycopg.connect(where.dsn(password="wrong", connect_timeout="5", **more))
            except psycopg.OperationalError as error:
                wrong = "password authentication failed" in str(error)
                told["looked at" if wrong else "turned away"] += time.monotonic() < end
                time.sleep(0 if wrong else 0.2)

    workers = [threading.Thread(target=guess, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(max(0.0, end + 0.1 - time.monotonic()))
    return told


def test_guesses_are_few_and_wait_in_no_worker() -> None:
    """Others go on meanwhile, who logs in from elsewhere waits a second at most, and shutdown for none."""
    with endpoint(limits=Limits(drain_seconds=20)) as served:
        _others_go_on(served)
        begun = time.monotonic()
    assert time.monotonic() - begun < 9, "those that wait for ten seconds are not waited for"


def _others_go_on(served: Endpoint) -> None:
    before = events.COUNTS.all()["login_failed"]
    with psycopg.connect(served.dsn()) as connection:
        connection.execute("SELECT 1")
        told = _guess(served, 1.5, 40)
        assert 2 <= told["looked at"] < 2 * WAITING, "those that wait at once, and few more"
        assert told["turned away"] > 5
        begun = time.monotonic()
        connection.execute("SELECT 1")
        assert time.monotonic() - begun < 10
    assert events.COUNTS.all()["login_failed"] - before >= 2
    begun = time.monotonic()
    _enter_from("127.0.0.2", served)
    assert time.monotonic() - begun < 8


def _enter_from(address: str, where: Endpoint) -> None:
    """Log in from an address of this machine."""
    client = Client(FixedHouse(where.house))
    with socket.create_connection(("127.0.0.1", where.port), 5, (address, 0)) as sock:

        def talk(data: bytes) -> bytes:
            sock.sendall(data)
            return sock.recv(65536)

        client.send = talk  # type: ignore[method-assign]
        assert b"v=" in client.login(ROLE, PASSWORD)


def test_without_the_delay_guesses_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the count above sees a delay that is missing."""
    monkeypatch.setattr(Attempt, "queue", lambda _: 0.0)
    with endpoint() as served:
        seen = 0
        for _ in range(8):  # a slow machine takes longer
            seen += _guess(served, 0.7, 40)["looked at"] if seen <= 2 * WAITING else 0
    assert seen > 2 * WAITING


def test_passwords_in_clear_wait_for_those_that_failed_meanwhile(clock: Clock) -> None:
    """A worker looks at several of them at once; the answers then come after the delay, right or wrong."""

    class Login:
        awaits_proof = True

        def __init__(self, right: bool) -> None:
            self.right = right

        def step(self, _: bytes) -> Any:
            yield "looked at"
            if not self.right:
                raise Fatal(WRONG, "wrong")
            return b"in", True

    for right in (True, False):
        throttle = Throttle(clock)
        machine = Machine(FixedHouse.__new__(FixedHouse))  # type: ignore[arg-type]
        steps = machine._prove(Login(right), Secret(b""), throttle.attempt(HERE, "ann"))  # type: ignore[arg-type]
        assert next(steps) == "looked at"
        _fail(throttle, 3)
        asked = next(steps)
        assert isinstance(asked, Wait)
        assert asked.seconds == PAIR.after(3)
        assert throttle.attempt(HERE, "ann").failures == (3 if right else 4)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    found = World()
    yield found
    found.service.close()


def _asked(world: World, throttle: Throttle, token: str) -> tuple[int, list[float]]:
    """The status of a request, and how long its answer waits."""
    waits: list[float] = []
    sleep = asyncio.sleep

    async def wait(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    app = Face(lambda: world.house.snapshots, Traffic(throttle=throttle)).app()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpsql.serve.http.app.asyncio.sleep", wait)
        status = Caller(app, token).get("/v1/budget").status_code
    return status, waits


def test_wrong_tokens_are_answered_late_and_right_ones_never(
    world: World, throttle: Throttle, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    right = world.robot._headers["Authorization"].removeprefix("Bearer ")
    waits = [_asked(world, throttle, "wrong") for _ in range(9)]
    assert [status for status, _ in waits] == [401] * 9
    assert [seconds for _, (seconds,) in waits] == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1, 1, 1]
    assert _asked(world, throttle, right) == (200, [])
    assert _asked(world, throttle, "") == (401, []), "who shows none guesses none"
    for _ in range(WAITING):
        _asked(world, throttle, "wrong")
    assert _asked(world, throttle, "wrong") == (429, [])
    assert _asked(world, throttle, right) == (200, [])
    clock.now += 61
    assert _asked(world, throttle, "wrong") == (401, [0.02])
    failed = [r.event for r in caplog.records if isinstance(getattr(r, "event", None), LoginFailed)]  # type: ignore[attr-defined]
    assert {(e.login, e.address, e.face) for e in failed} == {("", "127.0.0.1", "http")}


def test_a_known_name_costs_what_an_unknown_one_does(shop: Endpoint) -> None:
    """As many calls of functions, Python's and C's, so that time does not tell them apart."""

    def calls(name: str) -> Counter[str]:
        found: Counter[str] = Counter()

        def count(frame: Any, event: str, argument: Any) -> None:
            if event in ("call", "c_call"):
                found[getattr(argument, "__name__", frame.f_code.co_name)] += 1

        sys.setprofile(count)
        try:
            shop.house.verifier(name)
        finally:
            sys.setprofile(None)
        return found

    assert calls(ROLE) == calls("nobody") != Counter()
