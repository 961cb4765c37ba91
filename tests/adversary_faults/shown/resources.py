"""Faults of resources, seen in time and memory that one statement takes."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time

import httpx
import psycopg

import dpsql
from dpsql.memory.pool import POOL, Full, Use
from tests.adversary_faults.shown.catalog import answers
from tests.adversary_faults.shown.ledger import LONG, SLOW, SLOW_POLICY
from tests.adversary_faults.shown.serving import served
from tests.adversary_faults.shown.showing import shows
from tests.adversary_faults.world import POLICY, World

BRIEF = World(policy=POLICY.replace("units:", "limits: {timeout_seconds: 2}\nunits:", 1))


PATIENCE = 20.0


def seconds(world: World, *statements: str) -> float:
    """How long the last statement takes, answered or not; as long as anybody waits for it."""
    took = [float("inf")]

    def ask() -> None:
        with world.opened() as connection:
            for statement in statements:
                begun = time.monotonic()
                with contextlib.suppress(dpsql.Error):
                    connection.execute(statement)
            took[0] = time.monotonic() - begun

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return took[0]


@shows("the parser's work is not counted")
def parser() -> bool:
    return seconds(BRIEF, "SELECT " + "ARRAY[" * 24 + "1" + "]" * 24) > 8


@shows("planning has no limit")
def planning() -> bool:
    sums = ", ".join(f"SUM(pay * {i}), VAR_POP(pay + {i}), MEDIAN(age + {i})" for i in range(150))
    try:
        BRIEF.under(("timeout_seconds: 2", "timeout_seconds: 200")).ask(
            f"SELECT {sums} FROM people"
        )
    except dpsql.ProgrammingError as error:
        return "DP115" not in str(error)
    return True


@shows("comments are read again and again")
def comments() -> bool:
    ask = f"dpsql.connect({str(BRIEF.path)!r}).execute({'/**/' * 26 + 'SELECT 1'!r})"
    try:  # in a process of its own: what matches a pattern lets no other thread run
        subprocess.run(
            [sys.executable, "-c", f"import dpsql; {ask}"], timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return False


@shows("texts grow without an end")
def texts() -> bool:
    inner = "SELECT id, city AS c FROM people"
    for _ in range(5):
        inner = f"SELECT id, CONCAT(c, c, c, c) AS c FROM ({inner}) t"
    try:
        World().ask(f"SELECT COUNT(DISTINCT c) FROM ({inner}) t")
    except dpsql.ProgrammingError as error:
        return "DP116" not in str(error)
    return True


@shows("the data's engine is never stopped")
def endless() -> bool:
    return seconds(World(SLOW, SLOW_POLICY), "SELECT 1", LONG) > 3


@shows("one log-in takes all threads")
def lanes() -> bool:
    text = SLOW_POLICY.replace("timeout_seconds: 1,", "timeout_seconds: 8,")
    other = text.index("    max_groups_per_unit: 2\n") + len("    max_groups_per_unit: 2\n")
    more = '  other: {password: "left", epsilon: 10, delta: 1e-5}\n'
    world = World(SLOW, text[:other] + more + text[other:])
    with served(world) as endpoint:

        def ask() -> None:
            with contextlib.suppress(psycopg.Error), endpoint.connect() as one:
                one.execute(LONG)

        for _ in range(48):
            threading.Thread(target=ask, daemon=True).start()
        time.sleep(3)
        with endpoint.connect("other", "left") as mine:
            begun = time.monotonic()
            with contextlib.suppress(psycopg.Error):
                mine.execute("SELECT COUNT(*) FROM places")
            return time.monotonic() - begun > 3


@shows("connections that say nothing stay")
def crowd() -> bool:
    with served(World()) as endpoint, contextlib.ExitStack() as stack:
        made = [
            stack.enter_context(socket.create_connection(("127.0.0.1", endpoint.port), timeout=20))
            for _ in range(220)
        ]
        time.sleep(1)
        return not any(_closed(one) for one in made)


def _closed(one: socket.socket) -> bool:
    one.settimeout(0.05)
    try:
        return one.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@shows("bodies of HTTP have no limit")
def bodies() -> bool:
    from dpsql.cli import main

    world = World()
    main(["user", "add", "someone", "--policy", str(world.path), "--role", "analyst", "--token"])
    token = _token(world)
    with served(world, "--http-port", "0") as endpoint:
        found = httpx.post(
            f"http://127.0.0.1:{endpoint.http}/v1/query", content=b'{"sql": "SELECT 1", "x": "' + b"y" * 40_000_000 + b'"}',
            headers={"Authorization": f"Bearer {token}"}, timeout=60,
        )  # fmt: skip
        return found.status_code not in (413, 503, 429, 401)


def _token(world: World) -> str:
    from dpsql.serve import users

    user, token = users.with_token("again", "analyst")
    place = next(p for p in world.folder.iterdir() if p.name.endswith("users"))
    known = users.read(place)
    users.write(place, [*known.values(), user])
    return token


@shows("answers of the catalog have no limit")
def catalog() -> bool:
    with served(World()) as endpoint:
        told = answers(endpoint, "SELECT repeat('x', 1000) FROM generate_series(1, 60000)")
    return "too large" not in told and "too much memory" not in told


@shows("what clients hold is not counted")
def pool() -> bool:
    try:
        kept = [POOL.hold(Use.SESSIONS, 50_000_000, "somebody") for _ in range(100)]
    except Full:
        return False
    return bool(kept)


@shows("post-processing has no end")
def postprocessing() -> bool:
    return seconds(BRIEF, ENDLESS) > 10


ENDLESS = (
    "WITH g AS (SELECT day, COUNT(*) AS n FROM visits GROUP BY day) "
    "SELECT SUM(a.n * b.n * c.n * d.n * e.n * f.n) FROM g a, g b, g c, g d, g e, g f WHERE (a.n + b.n + c.n + d.n + e.n + f.n) % 7 <> 9"
)


@shows("results of post-processing are not counted")
def results() -> bool:
    question = (
        "WITH g AS (SELECT day, COUNT(*) AS n FROM visits GROUP BY day)"
        " SELECT a.n, b.n, c.n, d.n, e.n FROM g a, g b, g c, g d, g e LIMIT 14000000"
    )
    with World().opened() as connection:
        try:
            connection.execute(question)
        except dpsql.OperationalError:
            return False
    return True


@shows("rows that are constant have no bound")
def constants() -> bool:
    question = (
        "SELECT COUNT(*) FROM GENERATE_SERIES(1, 10000) AS a(x), GENERATE_SERIES(1, 10000) AS b(y)"
    )
    try:
        BRIEF.ask(question)
    except dpsql.ProgrammingError as error:
        return "DP115" not in str(error)
    except dpsql.OperationalError:
        return True
    return True
