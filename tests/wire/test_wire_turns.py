"""What one client does keeps no place and no time from others: silence, floods, and not reading."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any, cast

import psycopg
import pytest
from endpoint import PASSWORD, ROLE, Endpoint, endpoint
from support.waiting import wait_until
from talk import Client, FixedHouse, kinds, message, parse, query, startup

from dpsql.serve.lanes import Job
from dpsql.serve.pgwire.asking import Backend, Encode, Pause, Prove, Read, Run
from dpsql.serve.pgwire.connection import Connection
from dpsql.serve.pgwire.listener import Limits
from dpsql.serve.pgwire.work import Work
from dpsql.serve.traffic import Traffic

ASKS_FOR_TLS = struct.pack("!ii", 8, 80877103)


def _beginning(where: Endpoint, data: bytes) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", where.port), timeout=10)
    sock.sendall(data)
    return sock


def _enters(where: Endpoint) -> bool:
    try:
        psycopg.connect(where.dsn(sslmode="require")).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.mark.parametrize(
    "data",
    [ASKS_FOR_TLS, b"\x16\x03\x01", ASKS_FOR_TLS + b"\x16", b"\x16\x03\x01\x02\x00\x01", b"\0\0"],
    ids=["asks", "direct", "asks and begins", "begins", "none"],
)
def test_who_stops_in_the_beginning_keeps_no_place(data: bytes) -> None:
    """The deadline fires in the handshake, or the client leaves there."""
    with endpoint(tls=True, limits=Limits(connections=3, startup_seconds=1)) as narrow:
        socks = [_beginning(narrow, data) for _ in range(3)]
        assert wait_until(lambda: _enters(narrow))
        for sock in socks:
            sock.close()
        for _ in range(3):
            _beginning(narrow, data).close()
        assert wait_until(lambda: _enters(narrow))
        assert wait_until(lambda: not narrow.server.connections)


def test_draining_does_not_wait_for_a_handshake() -> None:
    with endpoint(tls=True, limits=Limits(startup_seconds=600, drain_seconds=600)) as quiet:
        socks = [_beginning(quiet, data) for data in (ASKS_FOR_TLS, b"\x16\x03\x01", b"")]
        assert wait_until(lambda: quiet.server.connections == 3)
    for sock in socks:  # leaving the block asserts that the server has ended
        sock.close()


def _entered(where: Endpoint) -> Client:
    client = Client(FixedHouse(where.house))
    assert kinds(client.login(ROLE, PASSWORD)).endswith("KZ")
    return client


@pytest.mark.parametrize(
    ("data", "most"),
    [
        (query("SHOW timezone") * 5_000, 100_000),
        (query(";".join(["SHOW timezone"] * 900)), 100_000),
        ((query("SHOW x" * 600) * 500), 100_000),
        (query("SHOW ALL") * 500, 300_000),
    ],
    ids=["many", "one script", "long", "with long answers"],
)
def test_a_client_has_its_turn_and_then_others(shop: Endpoint, data: bytes, most: int) -> None:
    """However much it sends at once, so much is done in one go. In the end all is answered."""
    machine = _entered(shop).machine
    machine.receive(data)
    said = [machine.take()]
    while machine.ask is not None:
        assert isinstance(machine.ask, Pause | Read)
        session = machine.session
        assert session is not None
        machine.resume(machine.ask.perform(session.backend))
        said.append(machine.take())
    assert len(said) > 2
    assert max(map(len, said)) < most
    whole = _entered(shop).send(data)
    assert b"".join(said) == whole


def test_a_long_text_is_read_by_a_worker(shop: Endpoint) -> None:
    sql = "SELECT '" + "x" * 5_000 + "'"
    for data in (query(sql), parse("", sql)):
        machine = _entered(shop).machine
        machine.receive(data)
        assert isinstance(machine.ask, Read)
    client = _entered(shop)
    assert kinds(client.send(query(sql))) == "TDCZ"


def test_many_rows_are_written_by_a_worker(shop: Endpoint) -> None:
    """Those of a known answer too: writing three thousand takes as long as a thousand statements."""
    client = _entered(shop)
    client.send(query("SELECT * FROM pg_proc"))
    client.machine.receive(query("SELECT * FROM pg_proc"))
    assert isinstance(client.machine.ask, Pause), "the first answer was long"
    client.machine.resume(None)
    assert isinstance(client.machine.ask, Encode)


def _open(where: Endpoint) -> psycopg.Connection:
    return psycopg.connect(where.dsn(), autocommit=True)


def _own(where: Endpoint, of: psycopg.Connection) -> Connection:
    """The endpoint's side of a connection."""
    return where.server._room.keys[of.info.backend_pid]


def _waiting(connection: Connection) -> int:
    transport = connection._transport
    return 0 if transport is None else transport.get_write_buffer_size()


def test_who_does_not_read_is_not_answered_on() -> None:
    """What waits for a client is bounded, and in the end all of it comes."""
    big, count, data = query("SELECT * FROM pg_proc"), 15, bytearray()
    with endpoint() as where, _open(where) as slow, _open(where) as other:
        end = b"SELECT %d\0" % len(other.execute("SELECT * FROM pg_proc").fetchall())
        own = _own(where, slow)
        with socket.socket(fileno=os.dup(slow.fileno())) as sock:
            sock.settimeout(30)
            sock.sendall(big * count)
            assert wait_until(lambda: not own._writable)
            for _ in range(30):
                assert other.execute("SELECT 1").fetchone() == (1,)
            assert own.machine.backlog
            assert _waiting(own) < 8_000_000
            assert not own._reading
            while data.count(end) < count:
                data += sock.recv(1 << 20)


def test_who_takes_nothing_is_let_go() -> None:
    with endpoint(limits=Limits(send_seconds=0.3, drain_seconds=2)) as where:
        connection = _open(where)
        with socket.socket(fileno=os.dup(connection.fileno())) as sock:
            sock.sendall(query("SELECT * FROM pg_proc") * 40)
            assert wait_until(lambda: not where.server.connections)
        with contextlib.suppress(psycopg.Error):
            connection.close()


def test_who_leaves_without_reading_is_let_go() -> None:
    """Good-bye was said; the last answers are not waited for longer than others."""
    with endpoint(limits=Limits(send_seconds=0.3, drain_seconds=2)) as where:
        connection = _open(where)
        with socket.socket(fileno=os.dup(connection.fileno())) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(query("SELECT oid, proname, prosrc FROM pg_proc") * 8 + b"X\0\0\0\4")
            assert wait_until(lambda: not where.server.connections)
        with contextlib.suppress(psycopg.Error):
            connection.close()


def test_a_vanished_client_is_noticed(shop: Endpoint) -> None:
    with psycopg.connect(shop.dsn(sslmode="disable")) as connection:
        transport = _own(shop, connection)._transport
        assert transport is not None
        raw = transport.get_extra_info("socket")
        assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """An endpoint where one log-in runs as many long statements as it may, and others of it wait."""
    release, begun = threading.Event(), threading.Semaphore(0)
    perform = Run.perform

    def wait(self: Run, backend: Backend) -> object:
        if "amount > 9000" in self.query.text:
            begun.release()
            release.wait(60)
        return perform(self, backend)

    monkeypatch.setattr(Run, "perform", wait)
    with endpoint() as where, contextlib.ExitStack() as stack:
        lane = where.server.traffic.data
        for number in range(lane.threads):
            connection = _open(where)
            stack.callback(connection.close)
            connection.pgconn.send_query(
                b"SELECT count(*) FROM orders WHERE amount > 9000%d" % number
            )
        for _ in range(lane.threads - lane.spare):
            assert begun.acquire(timeout=30)
        yield where
        release.set()


def test_long_statements_do_not_hold_up_what_is_soon_done(busy: Endpoint) -> None:
    with _open(busy) as connection:
        assert connection.execute("SELECT 987654").fetchone() == (987654,)
        assert connection.execute("SELECT count(*) FROM pg_type").fetchone() != (0,)
        assert len(connection.execute("SELECT * FROM pg_proc").fetchall()) > 1_000
    assert busy.spent == 0


def test_what_is_cancelled_before_it_has_begun_is_not_charged(busy: Endpoint) -> None:
    sql = b"SELECT count(*) FROM visits WHERE seconds > 77"
    with _open(busy) as connection:
        queued = _own(busy, connection)._work

        def cancel() -> None:
            assert wait_until(lambda: queued._job is not None)
            connection.cancel_safe()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(sql)
        canceller.join()
    leaving = _open(busy)
    own = _own(busy, leaving)
    leaving.pgconn.send_query(sql)
    assert wait_until(lambda: own._work._job is not None)
    job = own._work._job
    assert job is not None
    leaving.close()
    assert wait_until(job.future.cancelled)
    assert busy.spent == 0


def test_who_did_not_hear_is_told_again() -> None:
    """An engine that was about to begin when it was interrupted is interrupted once it has begun."""
    heard, begun = threading.Semaphore(0), threading.Event()

    class Deaf:
        def perform(self, _: object) -> bool:
            begun.set()
            return all(heard.acquire(timeout=20) for _ in range(3))

        def interrupt(self, _: int) -> None:
            heard.release()

    async def talk() -> object:
        ended: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        traffic, deaf = Traffic(), cast("Any", Deaf())
        work = Work(lambda *told: ended.set_result(told[1]), traffic)
        job = Job("ann", lambda: deaf.perform(None), deaf.interrupt)
        work.begin(deaf, job, traffic.data, lambda: traffic.data)
        await asyncio.to_thread(begun.wait)
        work.stop("cancel")
        told = await asyncio.wrap_future(job.future)
        assert not ended.done(), "nobody waits for it any more"
        return told

    assert asyncio.run(talk()) is True


def test_a_password_is_proved_by_a_worker(shop: Endpoint) -> None:
    """Hashing it takes long on purpose; nobody who is inside waits for it."""
    house = FixedHouse(shop.house)
    house.cleartext = True
    for password, proved in ((PASSWORD, True), ("wrong", False)):
        client = Client(house)
        client.machine._encrypted = True
        client.machine.receive(startup(ROLE) + message("p", password.encode() + b"\0"))
        assert isinstance(client.machine.ask, Prove)
        assert client.machine.take()
        assert ("Z" in kinds(client.send(b""))) is proved


def test_a_login_that_has_used_its_turn_is_read_and_not_answered_yet(shop: Endpoint) -> None:
    """Whichever of its connections it comes by; then it goes on from where it was."""
    machine = _entered(shop).machine
    machine.pause()
    machine.receive(query("SHOW timezone") * 3)
    assert isinstance(machine.ask, Pause)
    assert not machine.take()
    machine.resume(None)
    assert machine.take() == _entered(shop).send(query("SHOW timezone") * 3)


def test_floods_of_one_login_leave_rounds_to_others() -> None:
    """Twenty connections send at full speed what is done in the loop; another login is answered."""
    with endpoint() as where, contextlib.ExitStack() as stack:
        turns = where.server.traffic.turns
        rested: list[object] = []
        rest = turns.rest
        turns.rest = lambda login, go_on: (rested.append(login), rest(login, go_on))[1]  # type: ignore[method-assign]
        crowd = [stack.enter_context(_open(where)) for _ in range(20)]
        for connection in crowd:
            sock = stack.enter_context(socket.socket(fileno=os.dup(connection.fileno())))
            sock.setblocking(True)
            sock.sendall(query("SHOW timezone") * 2_000)
        assert wait_until(lambda: len(rested) > 100)
        assert {login[1] for login in rested} == {ROLE}  # type: ignore[index]
