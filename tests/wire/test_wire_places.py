"""Connections that have not logged in keep nobody out, over both faces; over sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import ClassVar

import httpx
import psycopg
import pytest
from endpoint import Endpoint, certificate, endpoint, generous
from support.services import real_service
from support.waiting import wait_until
from talk import startup

from dpsql.serve import users
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.http.server import HttpServer
from dpsql.serve.newcomers import Newcomers
from dpsql.serve.pgwire.listener import Limits
from dpsql.serve.traffic import Traffic

PLACES = 8
ASKS_FOR_TLS = struct.pack("!ii", 8, 80877103)


@pytest.fixture(scope="module")
def narrow() -> Iterator[Endpoint]:
    """An endpoint that bears few who have not logged in, and waits long for them."""
    with endpoint(tls=True, limits=Limits(connections=3, startup_seconds=600)) as found:
        found.server.traffic.newcomers.most_of_address = PLACES
        with psycopg.connect(found.dsn()) as first:
            first.execute("SELECT 1")
        yield found


@contextlib.contextmanager
def _crowd(port: int, said: bytes, count: int = 4 * PLACES) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        socks = []
        for _ in range(count):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            with contextlib.suppress(OSError):  # it had to give way already
                sock.sendall(said)
            socks.append(sock)
        yield socks


@pytest.mark.parametrize(
    "said", [b"", ASKS_FOR_TLS, b"\x16\x03\x01", startup("analyst")],
    ids=["silent", "asks for TLS", "begins TLS", "begins a log-in"],
)  # fmt: skip
def test_a_crowd_keeps_nobody_out(narrow: Endpoint, said: bytes) -> None:
    """Nor does it end a session that is there already."""
    with psycopg.connect(narrow.dsn(), autocommit=True) as inside, _crowd(narrow.port, said):
        begun = time.monotonic()
        for mode in ("require", "disable"):
            with psycopg.connect(narrow.dsn(sslmode=mode), autocommit=True) as other:
                assert other.execute("SELECT 1").fetchone() == (1,)
        assert time.monotonic() - begun < 20
        assert wait_until(lambda: narrow.server.connections <= PLACES + 3)
        assert inside.execute("SELECT 1").fetchone() == (1,)


def test_without_a_limit_the_crowd_stays(narrow: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault that the test above would find: places of newcomers that are not kept few."""
    monkeypatch.setattr(narrow.server.traffic.newcomers, "most_of_address", 10**6)
    monkeypatch.setattr(narrow.server.traffic.newcomers, "most", 10**6)
    assert wait_until(lambda: not narrow.server.connections)
    with _crowd(narrow.port, b""):
        assert wait_until(lambda: narrow.server.connections == 4 * PLACES)
    assert wait_until(lambda: not narrow.server.connections)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01", b"GET /h"], ids=["silent", "hello", "head"])
def test_a_crowd_keeps_nobody_out_of_http(tls: bool, said: bytes) -> None:
    class House:
        worlds: ClassVar[dict[str, object]] = {}

    traffic = Traffic(newcomers=Newcomers(100, PLACES))
    server = HttpServer(House(), "127.0.0.1", 0, certificate() if tls else None, traffic)  # type: ignore[arg-type]

    async def talk() -> None:
        port = await server.start()
        url = f"http{'s' if tls else ''}://127.0.0.1:{port}/healthz"
        socks = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4 * PLACES)]
        for _, writer in socks:
            writer.write(said)
        async with httpx.AsyncClient(verify=False, timeout=20) as client:
            assert (await client.get(url)).text == "ok\n"
        assert server.connections <= PLACES
        assert traffic.newcomers.displaced >= 3 * PLACES
        for _, writer in socks:
            writer.close()
        await server.stop()
        assert not len(traffic.newcomers)

    asyncio.run(talk())


def test_a_request_that_is_carried_out_keeps_its_place() -> None:
    """Its connection is no newcomer's; between requests it is one again."""
    service = real_service("shop", "shop", generous)
    made, token = users.with_token("robot", "analyst")
    users.write(service.policy.front.users, [made])
    go, traffic = threading.Event(), Traffic(newcomers=Newcomers(100, 2))
    budget = type(service.session("analyst")).budget

    def wait(self: object) -> object:
        go.wait(20)
        return budget(self)  # type: ignore[arg-type]

    house = ServiceEndpoint(service, role_catalog)

    async def talk() -> None:
        server = HttpServer(house, "127.0.0.1", 0, None, traffic)
        port = await server.start()
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as client:
            asked = asyncio.create_task(client.get(f"http://127.0.0.1:{port}/v1/budget"))
            while not traffic.catalog.state().busy:
                await asyncio.sleep(0.01)
            crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(9)]
            while traffic.newcomers.displaced < 7:
                await asyncio.sleep(0.01)
            go.set()
            assert (await asked).status_code == 200
            assert len(traffic.newcomers) <= 2
        for _, writer in crowd:
            writer.close()
        await server.stop()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(service.session("analyst")), "budget", wait)
        asyncio.run(talk())
    service.close()
