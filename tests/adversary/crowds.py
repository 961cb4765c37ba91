"""Many at once, and much from one: connections that say nothing, long requests, what a client leaves open.

The README says how many and how much of each there may be. Each attack goes beyond one of these numbers, and
looks whether somebody else is kept waiting.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from tests.adversary import shop
from tests.adversary.accounts import BURDENED, SLOW, seen
from tests.adversary.doors import tokens
from tests.adversary.faces.protocol import FLUSH, ConnectionEnded, Conversation, bind, parse, query
from tests.adversary.faces.server import Server
from tests.adversary.faces.servers import Servers
from tests.adversary.model import Finding, World
from tests.adversary.place import write
from tests.adversary.pressure import BOUND, MEGABYTE, MORE

LONGEST = 16 * MEGABYTE
"""``endpoint.message_bytes``: a client's longest message."""
SILENT, OF_AN_ADDRESS = 260, 200
"""Connections that say nothing, and how many of one address may stay."""
HELD = (BOUND - 512 * MEGABYTE) // 4 // 2
"""The most that one log-in may leave open: half of the pool, a quarter of what the engine leaves."""
VALUE = 3_000_000
"""Bytes of each value that is bound and left open."""
CROWD, FOR_ALL = 64, 20
"""Statements of one log-in at once, and the seconds that each would take."""
AT_ONCE = 13.0
"""Seconds within which the first statement of another log-in is answered."""


def silent(server: Server, world: World) -> Iterator[Finding]:
    """Connections that say nothing give way, and keep nobody out."""
    with ExitStack() as stack:
        there = [
            stack.enter_context(socket.create_connection(server.address, timeout=20))
            for _ in range(SILENT)
        ]
        time.sleep(1)
        staying = sum(map(_open, there))
        began = time.perf_counter()
        try:
            _talk(server, world, 0).close()
            took = time.perf_counter() - began
        except (ConnectionEnded, OSError):
            took = float("inf")
    if staying > OF_AN_ADDRESS:
        yield seen(world, "connections that say nothing stay", f"{staying} of {SILENT}")
    if took > AT_ONCE:
        yield seen(world, "connections that say nothing keep others out", f"{took:.1f} s")


def _open(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return one.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def long_requests(server: Server, world: World, token: str) -> Iterator[Finding]:
    """A request that is longer than any may be is not read to its end."""
    body = b'{"sql": "SELECT 1"' + b" " * (2 * LONGEST) + b"}"
    said = http.client.HTTPConnection(*server.http_address, timeout=60)
    status = 0
    with contextlib.suppress(OSError, http.client.HTTPException):
        said.request("POST", "/v1/query", body, {"Authorization": f"Bearer {token}"})
        status = said.getresponse().status
    said.close()
    if 0 < status < 400:
        yield seen(world, "a request has no longest length", f"{len(body)} bytes: {status}")


def left_open(server: Server, world: World) -> Iterator[Finding]:
    """What a client binds and leaves open is counted, and refused in the end."""
    value, held = b"x" * VALUE, 0
    with contextlib.suppress(ConnectionEnded, OSError), closing(_talk(server, world, 0)) as talk:  # fmt: skip
        talk.send(parse("s", "SELECT CAST($1 AS text)"), FLUSH)
        talk.until(b"1", b"E")
        for number in range(2 * HELD // VALUE):
            talk.send(bind(f"p{number}", "s", [value]), FLUSH)
            if talk.until(b"2", b"E")[-1].kind == b"E":
                break
            held += VALUE
    if held > 1.5 * HELD:
        yield seen(world, "what a client leaves open has no end", f"{held} bytes of {HELD}")


def one_for_all(server: Server, world: World) -> Iterator[Finding]:
    """Whoever asks much at once keeps nobody else waiting."""
    with ExitStack() as stack:
        other, *many = (stack.enter_context(closing(_talk(server, world, n))) for n in (1, *[0] * CROWD))  # fmt: skip
        _asked(other, "SELECT COUNT(*) FROM pages")
        for number, each in enumerate(many):
            each.send(query(SLOW.replace("0.25", f"0.{number + 100}")))
        time.sleep(3)
        took = _asked(other, "SELECT SUM(price), COUNT(*) FROM pages")
        for each in many:
            each.drop()
    if took > AT_ONCE:
        yield seen(world, "a log-in with many statements keeps another waiting", f"{took:.1f} s")


def _asked(talk: Conversation, sql: str) -> float:
    began = time.perf_counter()
    with contextlib.suppress(ConnectionEnded, OSError):
        talk.send(query(sql))
        talk.until_ready()
    return time.perf_counter() - began


def _talk(server: Server, world: World, role: int) -> Conversation:
    user = world.roles[role]
    return Conversation(server.address, user.name, user.password, seconds=2.0 * FOR_ALL)


def crowd(folder: Path, servers: Servers) -> Iterator[Finding]:
    """All of these, at one endpoint, and many made-up tokens beside the one that there is."""
    world = replace(shop.shop("crowds", seconds=FOR_ALL, more=MORE), views=(BURDENED,))
    write(world, folder)
    server = servers.at(world, folder)
    token = servers.token(folder, world.roles[0].name)
    yield from silent(server, world)
    yield from long_requests(server, world, token)
    yield from left_open(server, world)
    yield from one_for_all(server, world)
    yield from tokens(server, world)
