"""Attempts to spend more than an account has, or to learn something for nothing.

Each attack opens the shop through the module, does what a client or an accident may do, and holds
what the accounts say against what was asked. No server is needed.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import dpsql
from tests.adversary import books, shop
from tests.adversary.books import LEDGER, NANO
from tests.adversary.faces.servers import Servers
from tests.adversary.judges.defects import ENGINE
from tests.adversary.model import Case, Charge, Finding, Run, Step, Transcript, World, finding
from tests.adversary.place import POLICY, write
from tests.adversary.seams import answered_at

TOTAL = "SELECT COUNT(*) FROM people"
CITIES = "SELECT city, COUNT(*) FROM people GROUP BY city"
ATTO = 10**18
MOMENT = "TIMESTAMP '2024-03-01 12:00:00'"
BURDEN = 20_000_000
"""Orders with which a statement takes seconds."""
PATIENT = 120
"""Seconds that a question has where nothing is said about time."""
BURDENED = (
    f"INSERT INTO orders SELECT i % {shop.PEOPLE}, 25, {MOMENT}, 1 FROM range({BURDEN}) AS r(i)"
)
DEADLINE, BESIDE = 3, 4
"""Seconds of a deadline, and in which what it ended has said so."""
_TERMS = " AND ".join(
    " + ".join(f"SQRT(amount + {n}) * EXP(amount / {n + 60})" for n in range(first, first + 120))
    + " > 3"
    for first in (0, 200)
)
SLOW = f"SELECT COUNT(*) FROM orders WHERE amount > 0.25 AND {_TERMS}"
_DIGITS = "(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))"
_SERIES = "generate_series(1, 10000)"
CONSTANTS = (
    f"SELECT COUNT(*) AS n FROM {', '.join(f'{_DIGITS} AS v{n}(x)' for n in range(12))}",
    f"SELECT COUNT(*) AS n FROM {_SERIES} AS a(x), {_SERIES} AS b(y), {_SERIES} AS c(z) WHERE x + y + z > 7",
)
LATE = "DP904"
KILLED = """
import sys, dpsql
connection = dpsql.connect(sys.argv[1], role="analyst")
print("open", flush=True)
connection.execute(sys.argv[2])
"""
ASKED = """
import sys, dpsql
cursor = dpsql.connect(sys.argv[1], role="analyst").cursor()
cursor.execute("SET dpsql.epsilon = 0.001")
for condition in ("ok", "NOT ok", "region = 1", "rank = 2", "score > 0"):
    print(cursor.execute(f"SELECT COUNT(*), SUM(money) FROM people WHERE {condition}").fetchall())
"""
PATIENCE = 20.0
"""Seconds for a process to ask ``SLOW``; it is killed as soon as the ledger knows of it."""


def seen(world: World, means: str, *details: str) -> Finding:
    """What one of the attacks saw."""
    step = Step("ask", TOTAL)
    run = Run(world, (Transcript(step),))
    return finding("accounts", Case("inside", "same", (), (step,), run, run), 0, means, details)


def changed(world: World, *pairs: tuple[str, str]) -> World:
    """The world with other words in its policy; each must be there."""
    text = world.policy
    for old, new in pairs:
        if old not in text:
            raise ValueError(f"the policy has no {old!r}")
        text = text.replace(old, new)
    return replace(world, policy=text)


def spent(connection: dpsql.Connection) -> dict[str, float]:
    """What each account of a role has spent."""
    cursor = connection.cursor()
    cursor.execute("SELECT account, spent_epsilon FROM dpsql.budget")
    return {str(name): float(epsilon) for name, epsilon in cursor.fetchall()}


def ask(connection: dpsql.Connection, *texts: str) -> list[Any] | None:
    """The rows of the last statement; None where one is refused."""
    cursor = connection.cursor()
    try:
        for text in texts:
            cursor.execute(text)
    except Exception:  # noqa: BLE001 (any refusal is one)
        return None
    return list(cursor.fetchall())


def every_account_pays(folder: Path) -> Iterator[Finding]:
    """A question is charged to the data set, to the role and to the session."""
    world = changed(
        shop.shop("pays", seconds=PATIENT), ("  second:\n", "  second:\n    epsilon: 50\n")
    )
    write(world, folder)
    with closing(dpsql.connect(folder / POLICY, role="second")) as connection:
        before = spent(connection)
        answer = ask(connection, TOTAL)
        after = spent(connection)
    if answer is None:
        yield seen(world, "a question is refused that may be asked")
        return
    free = [name for name in before if after[name] < before[name] + 0.999]
    if free or len(before) < 3:
        yield seen(world, "an account does not pay", f"{before} and {after}")


def each_charge(folder: Path) -> Iterator[Finding]:
    """A question costs no less than its events do, and no more than one question may."""
    world = shop.shop("charges", seconds=PATIENT)
    write(world, folder)
    with closing(dpsql.connect(folder / POLICY, role="analyst")) as connection:
        for number, epsilon in enumerate(("0.0000000019", "0.333333333333", "1000", "2")):
            ask(connection, f"SET dpsql.epsilon = {epsilon}")
            ask(connection, f"{TOTAL} WHERE region = {number}")
    for charge in books.charges(folder, 0, 0)[0]:
        events = [books.epsilon(json.loads(text)) for text in charge.events]
        least = sum((each for each in events if each is not None), Fraction(0))
        if Fraction(charge.epsilon, NANO) < least:
            yield seen(
                world, "a charge is less than its events cost", f"{charge.epsilon} of {least}"
            )
        if charge.epsilon > NANO:
            yield seen(world, "a question costs more than one may", f"{charge.epsilon / NANO}")


def months(folder: Path) -> Iterator[Finding]:
    """A budget for a month is not there anew before the next one."""
    world = changed(
        shop.shop("months", seconds=PATIENT), ("  second:\n", "  second:\n    epsilon: 1\n    per: month\n"),
        ("    session: {epsilon: 3}\n", ""),
    )  # fmt: skip
    write(world, folder)
    asked = ("SET dpsql.fresh = on", "SET dpsql.epsilon = 0.8", TOTAL)
    days = [datetime(2030, *day, 12, tzinfo=UTC) for day in ((11, 2), (11, 3), (11, 30), (12, 1))]
    found = [answered_at(folder / POLICY, "second", day, asked) for day in days]
    if found != [True, False, False, True]:
        yield seen(world, "a month's budget is there at the wrong time", f"{days}: {found}")


def to_the_end(folder: Path) -> Iterator[Finding]:
    """An account is spent by thresholds and by noise until nothing is answered any more."""
    for composition in ("zcdp", "basic"):
        world = changed(
            shop.shop(f"end {composition}", basic=composition == "basic", seconds=PATIENT),
            ("dataset: {epsilon: 1e9, delta: 0.5", "dataset: {epsilon: 3, delta: 1e-6"),
            ("query: {epsilon: 1, delta: 1e-6}\n    max", "query: {epsilon: 1, delta: 3e-7}\n    max"),
        )  # fmt: skip
        place = folder / composition
        write(world, place)
        with closing(dpsql.connect(place / POLICY, role="analyst")) as connection:
            ask(connection, "SET dpsql.fresh = on")
            for mechanism, sql in (("laplace", CITIES), ("gaussian", TOTAL), ("laplace", TOTAL)):
                ask(connection, f"SET dpsql.mechanism = '{mechanism}'")
                for epsilon in ("0.01", "0.8", "0.3"):
                    ask(connection, f"SET dpsql.epsilon = {epsilon}")
                    _repeated(connection, sql)
        kept = books.charges(place, 0, 0)[0]
        if problem := overspent(kept, 3.0, 1e-6):
            yield seen(world, "an account gave more than it has", problem)


def _repeated(connection: dpsql.Connection, sql: str, most: int = 24) -> None:
    while most and ask(connection, sql) is not None:
        most -= 1


def overspent(charges: Sequence[Charge], epsilon: float, delta: float) -> str:
    """Why the events of an account cost more than it has, by both ways to add them up."""
    events = [json.loads(text) for charge in charges for text in charge.events]
    threshold = float(sum((books.delta(event) for event in events), Fraction(0)))
    rho = sum(books.rho(event) for event in events)
    pure = [books.epsilon(event) for event in events]
    simple = sum((p for p in pure if p is not None), Fraction(0))
    deltas = sum(charge.delta for charge in charges) / ATTO
    charged = sum(charge.epsilon for charge in charges) / NANO
    added = charged <= epsilon * (1 + 1e-9) and deltas <= delta * (1 + 1e-9)
    least = books.converted(rho, delta - threshold)
    if added or least <= epsilon * (1 + 1e-6):
        return ""
    return f"epsilon {charged} ({float(simple)} pure), delta {deltas}; or {least} after thresholds of {threshold}"


def unwritable(folder: Path) -> Iterator[Finding]:
    """While somebody else holds the ledger, nothing is answered that must be noted."""
    world = shop.shop("unwritable", seconds=PATIENT)
    write(world, folder)
    with closing(dpsql.connect(folder / POLICY, role="analyst")) as connection:
        ask(connection, TOTAL)
        with closing(sqlite3.connect(folder / LEDGER, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            rows = ask(connection, "SELECT SUM(money) FROM people")
            other.execute("ROLLBACK")
    if rows is not None:
        yield seen(world, "an answer leaves while the ledger cannot be written", repr(rows))


def rows_of_nobody(folder: Path) -> Iterator[Finding]:
    """Rows that are made of constants alone are refused where they are too many, not worked at."""
    world = shop.shop("constants", seconds=DEADLINE)
    write(world, folder)
    with closing(dpsql.connect(folder / POLICY, role="analyst")) as connection:
        for sql in CONSTANTS:
            began = time.perf_counter()
            rows, words = _stopped(connection, sql)
            if rows is None and words.startswith(LATE) and time.perf_counter() - began > DEADLINE:
                yield seen(
                    world, "rows of nobody are worked at as long as there is time", sql[:200]
                )


def put_back(folder: Path) -> Iterator[Finding]:
    """An older copy of the ledger is not taken where its head is noted elsewhere."""
    world = changed(
        shop.shop("put back", seconds=PATIENT), ("accounts:", "ledger: {head: head.txt}\naccounts:")
    )
    write(world, folder)
    asked = (TOTAL, "SELECT SUM(money) FROM people", "SELECT SUM(score) FROM people")
    for number, sql in enumerate(asked):
        try:
            with closing(dpsql.connect(folder / POLICY, role="analyst")) as connection:
                rows = ask(connection, sql)
        except Exception:  # noqa: BLE001 (a ledger that is not taken is what should be)
            rows = None
        ledgers = [path for path in folder.iterdir() if path.name.startswith(LEDGER)]
        for path in ledgers if number == 0 else ():
            shutil.copy(path, folder / f"old-{path.name}")
        for path in folder.glob("old-*") if number == 1 else ():
            shutil.copy(path, folder / path.name.removeprefix("old-"))
    if rows is not None:
        yield seen(world, "an older copy of the ledger is taken", repr(rows))


def stopped(folder: Path) -> Iterator[Finding]:
    """A question that the engine works at is paid for, whether a deadline or a kill ends it."""
    world = replace(shop.shop("stopped", seconds=DEADLINE), views=(BURDENED,))
    write(world, folder)
    with closing(dpsql.connect(folder / POLICY, role="analyst")) as connection:
        if not _planned(connection, SLOW):
            return  # the machine is too slow to say where the time went
        began = time.perf_counter()
        rows, words = _stopped(connection, SLOW)
        took = time.perf_counter() - began
        kept = books.charges(folder, 0, 0)[0]
        paid = min(spent(connection).values())
    if rows is None and (not kept or paid == 0):
        yield seen(world, "a question that was stopped is not paid for", repr(kept)[:500])
    if took > DEADLINE + BESIDE:
        yield seen(world, "a statement runs past its deadline", f"{took:.1f} s of {DEADLINE}")
    if ENGINE.search(words):
        yield seen(world, "an error is in the words of the engine", words)
    (folder / POLICY).write_text(
        changed(world, (f"timeout_seconds: {DEADLINE}", "timeout_seconds: 60")).policy
    )
    yield from _killed(folder, world)


def _stopped(connection: dpsql.Connection, sql: str) -> tuple[list[Any] | None, str]:
    """The rows of a statement, or what it was refused with."""
    cursor = connection.cursor()
    try:
        cursor.execute(sql)
    except Exception as error:  # noqa: BLE001 (any refusal is one)
        return None, str(error)
    return list(cursor.fetchall()), ""


def _planned(connection: dpsql.Connection, sql: str) -> bool:
    """Whether the plan of a statement is there at once; a first plan takes longer."""
    for _ in range(4):
        began = time.perf_counter()
        with contextlib.suppress(Exception):
            connection.explain(sql)
            if time.perf_counter() - began < DEADLINE / 4:
                return True
    return False


def _killed(folder: Path, world: World) -> Iterator[Finding]:
    sql = SLOW.replace("0.25", "0.5")
    before = len(books.charges(folder, 0, 0)[0])
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(folder / POLICY), sql], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    end = time.monotonic() + PATIENCE
    while len(books.charges(folder, 0, 0)[0]) == before and time.monotonic() < end:
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    with closing(dpsql.connect(folder / POLICY, role="analyst")) as connection:
        kept = books.charges(folder, 0, 0)[0]
        total = sum(charge.epsilon for charge in kept) / NANO
        low = min(spent(connection).values())
    if len(kept) > before and low < total * (1 - 1e-9):
        yield seen(world, "what a killed process began is not paid for", f"{low} of {total}")


def afresh(folder: Path) -> Iterator[Finding]:
    """Two processes that are asked the same for the first time draw other noise."""
    world, told = shop.shop("afresh", seconds=PATIENT), list[str]()
    for place in (folder / "one", folder / "other"):
        write(world, place)
        done = subprocess.run(
            [sys.executable, "-c", ASKED, str(place / POLICY)], capture_output=True, text=True, check=True
        )  # fmt: skip
        told.append(done.stdout)
    if told[0] == told[1]:
        yield seen(world, "noise is the same in two processes", told[0][:400])


ATTACKS: tuple[Callable[[Path], Iterator[Finding]], ...] = (
    every_account_pays, each_charge, afresh, months, to_the_end, unwritable, put_back, rows_of_nobody, stopped,
)  # fmt: skip


def spend(folder: Path, _: Servers) -> Iterator[Finding]:
    """All of them, each in a folder of its own."""
    for attack in ATTACKS:
        yield from attack(folder / attack.__name__)
