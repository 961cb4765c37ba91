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
GRACE = 25.0
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
PATIENCE = 2 * (CATALOG_DEADLINE + GRACE)
LARGEST = 40 * MEGABYTE
"""More than an answer may have that reads no data: 32 MB are the most."""
MORE = f"endpoint: {{memory: {BOUND // MEGABYTE}MB}}\n"
LARGE = (
    "SELECT repeat('x', 1000) FROM generate_series(1, 100000)",
    "SELECT a.proname, b.proname, a.prosrc FROM pg_proc a, pg_proc b",
    "SELECT g FROM generate_series(1, 9000000) AS s(g)",
)
"""Answers of more than 32 MB, which read no data."""
HEAVY = (
    SLOW,
    f"WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) {FINE}",
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
    *LARGE,
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What came of one heavy statement: seconds until its end, and bytes."""

    sql: str
    seconds: float
    size: int = 0


@dataclass(frozen=True)
class Measurement:
    """What was seen from outside while the attack went on."""

    answers: tuple[Answer, ...]
    latencies: tuple[float, ...]
    """Seconds of the other client's requests, one after the other."""
    memory: int
    """Most bytes that all processes had at once."""
    alive: bool


def complaints(seen: Measurement) -> Iterator[str]:
    """What is out of bounds."""
    for each in seen.answers:
        if each.seconds > CATALOG_DEADLINE + GRACE:
            yield f"no answer for {each.seconds:.1f} s: {each.sql[:200]}"
        if each.size > LARGEST and each.sql in LARGE:
            yield f"an answer of {each.size // MEGABYTE} MB: {each.sql[:200]}"
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
    steps = tuple(Step("ask", each.sql) for each in seen.answers)
    told = tuple(
        Transcript(s, seconds=each.seconds) for s, each in zip(steps, seen.answers, strict=True)
    )
    run = Run(world, told, folder=folder)
    case = Case("simple", "same", (), steps, run, run)
    for complaint in complaints(seen):
        yield finding("resources", case, 0, complaint)


def _measured(world: World, server: Server, statements: Sequence[str]) -> Measurement:
    """Attackers take turns with the statements until each was asked once, or there is enough to say."""
    todo, answers = list(reversed(statements)), list[Answer]()
    with _talk(world, server, 0) as first:
        _asked(first, FINE)
    attackers = [
        threading.Thread(target=_attack, args=(world, server, todo, answers))
        for _ in range(ATTACKERS)
    ]
    latencies, most = list[float](), 0
    with _talk(world, server, 1) as other:
        for each in attackers:
            each.start()
        while any(each.is_alive() for each in attackers):
            latencies.append(_asked(other, "SELECT 1").seconds)
            most = max(most, server.resident_bytes())
            if most > BOUND + INTERPRETER or latencies[-1] > DEADLINE + GRACE:
                todo.clear()
            time.sleep(BETWEEN)
    alive = server.process.poll() is None
    return Measurement(tuple(answers), tuple(latencies), most, alive)


@contextlib.contextmanager
def _talk(world: World, server: Server, role: int) -> Iterator[Conversation]:
    user = world.roles[role]
    talk = Conversation(server.address, user.name, user.password, seconds=PATIENCE)
    try:
        yield talk
    finally:
        talk.close()


def _asked(talk: Conversation, sql: str) -> Answer:
    """The answer of a query; of one that ends the connection, what came before."""
    start, size = time.perf_counter(), 0
    with contextlib.suppress(ConnectionEnded, OSError):
        talk.send(query(sql))
        for each in iter(talk.read, None):
            size += len(each.body)
            talk.heard.clear()
            if each.kind == b"Z" or size > 2 * LARGEST:
                break
    return Answer(sql, time.perf_counter() - start, size)


def _attack(world: World, server: Server, todo: list[str], answers: list[Answer]) -> None:
    """Take statements as long as there are any, and nobody waits too long."""
    while todo:
        sql = todo.pop()
        with contextlib.suppress(ConnectionEnded, OSError), _talk(world, server, 0) as talk:
            answers.append(_asked(talk, sql))
            if answers[-1].seconds > CATALOG_DEADLINE + GRACE:
                todo.clear()
