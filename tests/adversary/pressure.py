"""Statements that would take minutes or gigabytes, and what others notice of them.

Attackers of one role ask them at once over several connections. Each must end by its deadline; the
process must stay within its memory; and another role's ``SELECT 1`` must be answered meanwhile.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.adversary import shop
from tests.adversary.faces.protocol import ConnectionEnded, Conversation, query
from tests.adversary.faces.server import Server
from tests.adversary.faces.servers import Servers
from tests.adversary.model import Case, Finding, Run, Step, Transcript, World, finding
from tests.adversary.place import write
from tests.adversary.sequences import FINE, SLOW

DEADLINE = 3
"""Seconds of ``limits.timeout_seconds``; a catalog query has five."""
CATALOG_DEADLINE = 5
GRACE = 10.0
"""Seconds more, for a machine that does other things too."""
MEGABYTE = 1 << 20
BOUND = 1536 * MEGABYTE
"""``endpoint.memory``."""
INTERPRETER = 400 * MEGABYTE
"""What the interpreter and its libraries take beside it, in all processes."""
ATTACKERS = 6
USUAL = 1.0
"""Seconds within which half of the other client's requests are answered."""
BETWEEN = 0.02
MORE = f"endpoint: {{memory: {BOUND // MEGABYTE}MB}}\n"
HEAVY = (
    SLOW,
    f"WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) {FINE}",
    "SELECT COUNT(*) FROM generate_series(1, 100000000000) AS g(n)",
    "SELECT COUNT(*) FROM pg_class a, pg_class b, pg_class c, pg_attribute d, pg_attribute e",
    "SELECT REPEAT('x', 2000000000)",
    "SELECT STRING_AGG(a.proname || b.proname, ',') FROM pg_proc a, pg_proc b, pg_proc c",
    f"SELECT {'(' * 3000}1{')' * 3000}",
    f"SELECT COUNT(*) FROM people WHERE {' OR '.join(f'region = {n} + score' for n in range(3000))}",
    f"SELECT COUNT(*) FROM people WHERE region IN ({', '.join(map(str, range(60000)))})",
    "SELECT COUNT(*) FROM people GROUP BY CUBE (region, rank, colour, ok, joined, city)",
    "SELECT COUNT(*) FROM people, generate_series(1, 1000000000) AS g(n)",
    "SELECT " + ", ".join(f"SUM(score * {n}) AS s{n}" for n in range(1500)) + " FROM people",
    "SELECT LENGTH(REPLACE(REPLACE(REPEAT('a', 1000000), 'a', 'aaaa'), 'a', 'aaaa')), COUNT(*) FROM people",
    "SELECT joined, seen, money, COUNT(*) FROM people GROUP BY 1, 2, 3",
    f"SELECT a.title, COUNT(*) FROM {', '.join(f'pages {n}' for n in 'abcdefghijklm')} GROUP BY a.title",
)


@dataclass(frozen=True)
class Measurement:
    """What was seen from outside while the attack went on."""

    statements: tuple[tuple[str, float], ...]
    """Each heavy statement with the seconds until its answer."""
    latencies: tuple[float, ...]
    """Seconds of the other client's requests, one after the other."""
    memory: int
    """Most bytes that all processes had at once."""
    alive: bool


def complaints(seen: Measurement) -> Iterator[str]:
    """What is out of bounds."""
    for sql, seconds in seen.statements:
        if seconds > CATALOG_DEADLINE + GRACE:
            yield f"no answer for {seconds:.1f} s: {sql[:200]}"
    if seen.memory > BOUND + INTERPRETER:
        yield f"{seen.memory // MEGABYTE} MB were taken, of {BOUND // MEGABYTE}"
    if not seen.latencies or statistics.median(seen.latencies) > USUAL:
        yield f"another client's SELECT 1 takes {seen.latencies[:5]} s"
    elif max(seen.latencies) > DEADLINE + GRACE:
        yield f"another client's SELECT 1 waited {max(seen.latencies):.1f} s"
    if not seen.alive:
        yield "the server has ended"


def press(folder: Path, servers: Servers, statements: Sequence[str] = HEAVY) -> Iterator[Finding]:
    """The attack on a server of its own."""
    world = shop.shop("pressure", seconds=DEADLINE, more=MORE)
    write(world, folder)
    seen = _measured(world, servers.at(world, folder), statements)
    steps = tuple(Step("ask", sql) for sql, _ in seen.statements)
    told = tuple(Transcript(s, seconds=t) for s, (_, t) in zip(steps, seen.statements, strict=True))
    run = Run(world, told, folder=folder)
    case = Case("simple", "same", (), steps, run, run)
    for complaint in complaints(seen):
        yield finding("resources", case, 0, complaint)


def _measured(world: World, server: Server, statements: Sequence[str]) -> Measurement:
    """Attackers take turns with the statements until each was asked once."""
    todo, timed = list(reversed(statements)), list[tuple[str, float]]()
    with _talk(world, server, 0) as first:
        _asked(first, FINE)
    attackers = [
        threading.Thread(target=_attack, args=(world, server, todo, timed))
        for _ in range(ATTACKERS)
    ]
    latencies, most = list[float](), 0
    with _talk(world, server, 1) as other:
        for each in attackers:
            each.start()
        while any(each.is_alive() for each in attackers):
            latencies.append(_asked(other, "SELECT 1"))
            most = max(most, server.resident_bytes())
            time.sleep(BETWEEN)
    alive = server.process.poll() is None
    return Measurement(tuple(timed), tuple(latencies), most, alive)


@contextlib.contextmanager
def _talk(world: World, server: Server, role: int) -> Iterator[Conversation]:
    patience = 4 * (CATALOG_DEADLINE + GRACE)
    user = world.roles[role]
    talk = Conversation(server.address, user.name, user.password, seconds=patience)
    try:
        yield talk
    finally:
        talk.close()


def _asked(talk: Conversation, sql: str) -> float:
    """Seconds from a query to the end of its answer."""
    start = time.perf_counter()
    talk.send(query(sql))
    talk.until_ready()
    return time.perf_counter() - start


def _attack(
    world: World, server: Server, todo: list[str], timed: list[tuple[str, float]]
) -> None:  # fmt: skip
    """Take statements as long as there are any; one that ends the connection has ended too."""
    while todo:
        sql = todo.pop()
        start = time.perf_counter()
        with contextlib.suppress(ConnectionEnded, OSError), _talk(world, server, 0) as talk:
            _asked(talk, sql)
        timed.append((sql, time.perf_counter() - start))
