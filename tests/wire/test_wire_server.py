"""The shell around the machine: TLS, limits, deadlines, cancelling, draining."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest
from endpoint import PASSWORD, ROLE, Endpoint, cancel_once_begun, endpoint, generous
from talk import errors, message, query, startup

from dpsql.engines.catalog import pool
from dpsql.serve.pgwire.asking import Run
from dpsql.serve.pgwire.listener import Limits

QUICK = Limits(
    connections_per_role=2, startup_seconds=2, largest_message=50_000,
    drain_seconds=2, idle_seconds=2,
)  # fmt: skip


@pytest.fixture(scope="module")
def narrow() -> Iterator[Endpoint]:
    """An endpoint with small limits."""
    with endpoint(limits=QUICK) as found:
        yield found


def _socket(where: Endpoint) -> socket.socket:
    return socket.create_connection(("127.0.0.1", where.port), timeout=10)


def _everything(sock: socket.socket) -> bytes:
    data = b""
    while piece := sock.recv(65536):
        data += piece
    return data


@pytest.mark.parametrize("binding", ["require", "prefer", "disable"])
def test_tls_with_and_without_channel_binding(shop: Endpoint, binding: str) -> None:
    dsn = shop.dsn(sslmode="require", channel_binding=binding)
    for _ in range(3):
        with psycopg.connect(dsn) as connection:
            assert connection.pgconn.ssl_in_use
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_tls_may_come_first(shop: Endpoint) -> None:
    for binding in ("require", "disable"):
        dsn = shop.dsn(sslmode="require", sslnegotiation="direct", channel_binding=binding)
        with psycopg.connect(dsn) as connection:
            assert connection.pgconn.ssl_in_use
            assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    ("offered", "answered"), [(["postgresql"], True), (["h2"], False), ([], False)]
)
def test_tls_that_comes_first_names_its_protocol(
    shop: Endpoint, offered: list[str], answered: bool
) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if offered:
        context.set_alpn_protocols(offered)
    found = b""
    with (
        _socket(shop) as plain,
        contextlib.suppress(OSError),
        context.wrap_socket(plain) as sock,
    ):
        sock.sendall(startup(ROLE))
        found = sock.recv(1)
    assert found == (b"R" if answered else b"")


def test_who_leaves_before_saying_anything_is_forgotten(shop: Endpoint) -> None:
    before = shop.server.connections
    for _ in range(5):
        _socket(shop).close()
    for _ in range(100):
        if shop.server.connections <= before:
            return
        time.sleep(0.02)
    pytest.fail("connections are still there")


def test_wrong_passwords_are_refused_over_tls(shop: Endpoint) -> None:
    for mode in ("require", "disable"):
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(shop.dsn(sslmode=mode, password="wrong"))
    psycopg.connect(shop.dsn()).close()  # other tests of this endpoint would wait after failures


def test_plain_connections_are_refused_where_tls_is_required() -> None:
    with endpoint(tls=True, requires_tls=True) as strict:
        with pytest.raises(psycopg.OperationalError, match="encrypted connections only"):
            psycopg.connect(strict.dsn(sslmode="disable"))
        with psycopg.connect(strict.dsn(sslmode="require")) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_bytes_smuggled_before_the_handshake_are_refused(shop: Endpoint) -> None:
    with _socket(shop) as sock:
        sock.sendall(struct.pack("!ii", 8, 80877103) + startup(ROLE))
        assert errors(_everything(sock)) == ["08P01"]


def test_who_says_nothing_is_shown_out(narrow: Endpoint) -> None:
    with _socket(narrow) as sock:
        begun = time.monotonic()
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""
        assert time.monotonic() - begun < 9


def test_an_oversized_message_ends_the_connection(narrow: Endpoint) -> None:
    connection = psycopg.connect(narrow.dsn(), autocommit=True)
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT '" + "x" * 60_000 + "'")
    connection.close()


def test_a_role_has_so_many_connections(narrow: Endpoint) -> None:
    refused = pytest.raises(psycopg.OperationalError, match="too many connections")
    with psycopg.connect(narrow.dsn()), psycopg.connect(narrow.dsn()), refused:
        psycopg.connect(narrow.dsn())
    for _ in range(50):
        try:
            psycopg.connect(narrow.dsn()).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            break
    else:
        pytest.fail("places were not given back")


def test_an_endpoint_has_so_many_connections() -> None:
    """Of those who have logged in; others take no place of theirs."""
    with endpoint(limits=Limits(connections=1)) as one:
        refused = pytest.raises(psycopg.OperationalError, match="too many clients")
        with psycopg.connect(one.dsn()), refused:
            psycopg.connect(one.dsn())


def test_idle_sessions_end(narrow: Endpoint) -> None:
    with psycopg.connect(narrow.dsn(), autocommit=True) as connection:
        for _ in range(3):  # the endpoint may be late
            time.sleep(2.5)
            try:
                connection.execute("SELECT 1")
            except psycopg.OperationalError:
                return
    pytest.fail("it is still there")


@pytest.fixture
def slow(shop: Endpoint, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Queries wait until the event is set, or 20 seconds."""
    release = threading.Event()
    perform = Run.perform

    def wait(self: Run, backend: object) -> object:
        release.wait(20)
        return perform(self, backend)  # type: ignore[arg-type]

    monkeypatch.setattr(Run, "perform", wait)
    return release


def test_cancelling_answers_at_once_and_keeps_the_charge(
    shop: Endpoint, slow: threading.Event
) -> None:
    sql = "SELECT count(*) FROM visits WHERE seconds > 1234"
    before = shop.spent
    with psycopg.connect(shop.dsn(), autocommit=True) as connection:
        canceller = cancel_once_begun(shop, connection)
        begun = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(sql)
        assert time.monotonic() - begun < 10
        canceller.join()
        slow.set()
        rows = connection.execute(sql).fetchall()
        assert len(rows) == 1
    assert shop.spent == pytest.approx(before + 0.1)


def test_cancelling_stops_the_engine_and_keeps_the_charge(
    shop: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = shop.service._engine
    measure, begun, ended = engine.measure, threading.Event(), threading.Event()

    def endless(sql: str, parameters: object) -> object:
        begun.set()
        try:
            return measure("SELECT count(*) AS p0 FROM range(100000000000) AS r(i)", {})
        finally:
            ended.set()

    monkeypatch.setattr(engine, "measure", endless)
    before = shop.spent
    with psycopg.connect(shop.dsn(), autocommit=True) as connection:

        def cancel() -> None:  # before it is charged nothing would be kept
            assert begun.wait(60)
            connection.cancel_safe()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT count(*) FROM visits WHERE seconds > 4321")
        assert ended.wait(60)
        canceller.join()
        assert connection.execute("SELECT 13").fetchone() == (13,)
    assert shop.spent == pytest.approx(before + 0.1)


@pytest.mark.parametrize(("version", "number"), [("3.0", 30000), ("3.2", 30002)])
def test_cancelling_stops_the_catalog_too(
    shop: Endpoint, version: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Protocol 3.2 has longer keys."""
    monkeypatch.setattr(pool, "SECONDS", 60.0)
    dsn = shop.dsn(max_protocol_version=version)
    with psycopg.connect(dsn, autocommit=True) as connection:
        assert connection.pgconn.full_protocol_version == number
        canceller = cancel_once_begun(shop, connection)
        begun = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT count(*) FROM generate_series(1, 1000000000000) AS s(x)")
        assert time.monotonic() - begun < 30
        canceller.join()
        assert connection.execute("SELECT 14").fetchone() == (14,)


def test_a_wrong_key_cancels_nothing(shop: Endpoint, slow: threading.Event) -> None:
    with psycopg.connect(shop.dsn(), autocommit=True) as connection:
        pid = connection.pgconn.backend_pid
        with _socket(shop) as sock:
            sock.sendall(struct.pack("!iiii", 16, 80877102, pid, 1))
            assert sock.recv(1) == b""
        slow.set()
        assert connection.execute("SELECT 12").fetchone() == (12,)


@pytest.mark.parametrize("wrong", ["shorter", "longer", "other", "none"])
def test_a_wrong_long_key_cancels_nothing(
    shop: Endpoint, slow: threading.Event, wrong: str
) -> None:
    """Nor does one that begins as the right one does."""
    with psycopg.connect(shop.dsn(max_protocol_version="3.2"), autocommit=True) as connection:
        pid = connection.pgconn.backend_pid
        told = shop.server._room.keys[pid].machine.key
        assert told is not None
        right = told[1]
        assert len(right) == 32
        key = {
            "shorter": right[:4], "longer": right + b"\0", "none": b"",
            "other": right[:-1] + bytes([right[-1] ^ 1]),
        }[wrong]  # fmt: skip
        with ThreadPoolExecutor(1) as beside, _socket(shop) as sock:
            asked = beside.submit(connection.execute, f"SELECT '{wrong}'")
            while shop.server._room.keys[pid].machine.idle and not asked.done():
                time.sleep(0.01)
            sock.sendall(struct.pack("!iii", 12 + len(key), 80877102, pid) + key)
            said = _everything(sock)
            assert errors(said) == (["08P01"] if wrong == "none" else [])
            slow.set()
            assert asked.result().fetchone() == (wrong,)


def test_a_statement_may_take_so_long(shop: Endpoint, slow: threading.Event) -> None:
    with psycopg.connect(shop.dsn(), autocommit=True) as connection:
        connection.execute("SET statement_timeout = '200ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            connection.execute("SELECT count(*) FROM countries WHERE population > 77")
        slow.set()


def test_a_session_is_not_idle_while_its_statement_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends when it asks nothing for as long, and not earlier."""
    perform, seconds = Run.perform, 0.3

    def wait(self: Run, backend: object) -> object:
        time.sleep(4 * seconds)
        return perform(self, backend)  # type: ignore[arg-type]

    monkeypatch.setattr(Run, "perform", wait)
    limits = replace(QUICK, idle_seconds=seconds)
    with endpoint(limits=limits) as found:
        connection = psycopg.connect(found.dsn(), autocommit=True)
        assert connection.execute("SELECT 'busy'").fetchone() == ("busy",)
        time.sleep(4 * seconds)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 'late'")
        connection.close()


def test_a_client_that_leaves_is_forgotten(shop: Endpoint, slow: threading.Event) -> None:
    before = shop.server.connections
    connection = psycopg.connect(shop.dsn(), autocommit=True)
    connection.pgconn.send_query(b"SELECT count(*) FROM countries WHERE population > 99")
    connection.close()
    slow.set()
    for _ in range(100):
        if shop.server.connections <= before:
            return
        time.sleep(0.02)
    pytest.fail("the connection is still there")


def test_many_clients_at_once(shop: Endpoint) -> None:
    import asyncpg

    async def one(number: int) -> int:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=shop.port, user=ROLE, password=PASSWORD, database="x", ssl=False
        )
        found: int = await connection.fetchval("SELECT $1::int4", number)
        await connection.fetch("SELECT country, count(*) FROM customers GROUP BY 1")
        await connection.close()
        return found

    async def all_of_them() -> list[int]:
        return list(await asyncio.gather(*(one(i) for i in range(40))))

    assert asyncio.run(all_of_them()) == list(range(40))


def test_draining_lets_a_statement_end() -> None:
    with endpoint(generous, limits=replace(QUICK, idle_seconds=0)) as found:
        connection = psycopg.connect(found.dsn(), autocommit=True)
        connection.execute("SELECT count(*) FROM orders")
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    connection.close()


def test_terminate_closes(shop: Endpoint) -> None:
    with _socket(shop) as sock:
        sock.sendall(startup(ROLE))
        assert sock.recv(1) == b"R"
        sock.sendall(message("X") + query("SELECT 1"))
        assert b"E" not in _everything(sock)[-5:]
