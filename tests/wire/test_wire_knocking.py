"""Whoever has not logged in: hostile start-up packets and proofs, TLS, and sockets that break off."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random  # noqa: TID251 (mistakes need no good randomness)
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from endpoint import ROLE, Endpoint, certificate, endpoint
from mistakes import HOSTILE, LONGEST, beyond_logins, hostile, luck_of, misspelt
from talk import Client, FixedHouse, kinds, message, startup

from dpsql.serve.pgwire.handshake import encrypted
from dpsql.serve.pgwire.listener import Limits

ASKS_FOR_TLS = struct.pack("!ii", 8, 80877103)
_OPTIONS = (b"-c", b"--", b"-", b"-c-c", b"=", b"\\", b"\\ ", b"a=b", b"\\=", b"--a-b=", b"-" * 3000,
            b"\\ " * 1000, b"dpsql.session=x", b"dpsql.epsilon=0.1")  # fmt: skip
_FIELDS = (b"n", b"y", b"p=tls-server-end-point", b"n=", b"r=abc", b"r=", b"a====", b"m=x", b"=", b"",
           b"c=biws", b"p=AAAA", b"p=", b"i=1", b"\xff", b",a====" * 300, b"=" * 3000)  # fmt: skip


def _knock(luck: random.Random) -> Iterator[bytes]:
    """A start-up packet and what follows it, each with or without mistakes."""
    options = misspelt(b"-c a=b --c=d", luck, _OPTIONS).rstrip(b"\0").decode("latin-1")
    first = startup(luck.choice((ROLE, "nobody", "")), options=options)
    yield first if luck.random() < 0.8 else hostile(first, luck)
    bare = misspelt(b"n,,n=,r=abc", luck, _FIELDS, b",").rstrip(b"\0")
    bare = bare if luck.random() < 0.3 else b"n,,n=,r=abc"
    length = struct.pack("!i", len(bare) if luck.random() < 0.95 else luck.randrange(-2, 99))
    yield message(
        "p", luck.choice((b"SCRAM-SHA-256", b"SCRAM-SHA-256-PLUS")) + b"\0" + length + bare
    )
    final = misspelt(b"c=biws,r=abc,p=AAAA", luck, _FIELDS, b",").rstrip(b"\0")
    last = message("p", final)
    yield last if luck.random() < 0.8 else hostile(last, luck)


@pytest.mark.no_cover  # the tests of log-ins run the same lines
@pytest.mark.parametrize("seed", range(2))
def test_hostile_log_ins_never_break_it(
    shop: Endpoint, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Each message takes a bounded time, and nobody gets in."""
    luck, reached = luck_of(seed), 0
    for _ in range(HOSTILE // 25):
        client = Client(FixedHouse(shop.house))
        for data in _knock(luck):
            begun = time.thread_time()
            client.send(data)
            assert time.thread_time() - begun < LONGEST
            reached += b"r=abc" in client.received
        assert "Z" not in kinds(client.received.lstrip(b"N"))
        assert client.machine.session is None
    assert reached > HOSTILE // 200, "most come as far as to prove something"
    assert not beyond_logins(caplog.records)


def _hello() -> bytes:
    """What a client begins a TLS handshake with."""
    answer, said = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        _context().wrap_bio(answer, said).do_handshake()
    return said.read()


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["postgresql"])
    return context


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("hello", [b"", b"\x16"], ids=["asked", "unasked"])
@pytest.mark.parametrize("gives_up", [False, True], ids=["lost", "given up"])
@pytest.mark.parametrize("steps", range(4))
def test_a_handshake_ends_with_its_connection(
    loop: str, hello: bytes, steps: int, *, gives_up: bool
) -> None:
    """Also when the client is gone before it begins. Nothing of it is left: no task, no timer, no buffer."""

    async def shake() -> None:
        made = asyncio.get_running_loop().create_future()

        class Lost(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                made.set_result(transport)

        server = await asyncio.get_running_loop().create_server(Lost, "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()):
            transport = await made
            context = certificate().context()
            handshake = asyncio.ensure_future(encrypted(transport, Lost(), context, hello))
            for _ in range(steps):
                await asyncio.sleep(0)
            if gives_up:
                handshake.cancel()
            transport.abort()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                assert await asyncio.wait_for(handshake, 10) is None
        server.close()
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    pytest.importorskip(loop).run(shake())
    gc.collect()  # a transport that was not closed would warn


def _break_in(port: int, hello: bytes, seed: int) -> None:
    """One connection that goes wrong somewhere, and is left in one of several ways."""
    luck = luck_of(seed)
    sock = socket.create_connection(("127.0.0.1", port), timeout=5)
    with contextlib.suppress(OSError):
        way = luck.randrange(6)
        if way < 3:
            sock.sendall(ASKS_FOR_TLS)
            if luck.random() < 0.8:
                sock.recv(1)
        if way == 0:
            sock.sendall(hostile(hello, luck))
        elif way == 1:
            sock = _context().wrap_socket(sock)
            sock.sendall(b"".join(_knock(luck)))
        elif way == 3:
            sock.sendall(hostile(hello, luck))
        elif way == 4:
            sock.sendall(b"".join(_knock(luck)))
        else:
            sock.sendall(luck.randbytes(luck.randrange(1, 300)))
        match luck.randrange(4):
            case 0:
                sock.recv(1000)
            case 1:
                sock.shutdown(socket.SHUT_WR)
            case 2:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            case _:
                time.sleep(luck.random() / 5)
    sock.close()


def _enters(where: Endpoint) -> bool:
    with contextlib.suppress(psycopg.OperationalError):
        psycopg.connect(where.dsn(sslmode="require")).close()
        return True
    return False


def test_hostile_connections_leave_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    """No place is kept, no task fails unseen, and others still get in."""
    hello = _hello()
    with endpoint(tls=True, limits=Limits(startup_seconds=1, drain_seconds=2)) as where:
        with ThreadPoolExecutor(16) as crowd:
            list(crowd.map(lambda n: _break_in(where.port, hello, n), range(HOSTILE // 200)))
        end = time.monotonic() + 30
        while where.server.connections and time.monotonic() < end:
            time.sleep(0.05)
        assert not where.server.connections
        while len(asyncio.all_tasks(where.loop)) > 1 and time.monotonic() < end:
            time.sleep(0.05)
        assert len(asyncio.all_tasks(where.loop)) == 1, "no handshake is left"
        assert any(_enters(where) for _ in range(20)), (
            "a busy machine may take longer than a second"
        )
    assert not beyond_logins(caplog.records)
