"""Faults of the ledger, seen in what accounts have left."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import dpsql
from dpsql.service import Service
from tests.adversary_faults.shown.showing import shows
from tests.adversary_faults.world import DATA, POLICY, World, refused, spent


def limited(total: str, query: str, more: str = "") -> str:
    """The policy with accounts that hold so much."""
    head, _, _ = POLICY.partition("accounts:")
    return (
        f"{head}accounts:\n  dataset: {{epsilon: {total}, delta: 1e-3}}\nroles:\n"
        f"  analyst: {{epsilon: {total}, delta: 1e-4, session: {{epsilon: {total}}}, query: {{epsilon: {query}}}{more}}}\n"
    )


SLOW = (
    *DATA, "CREATE TABLE many AS SELECT 1 + i % 1000 AS id, hash(i) % 1000000 AS x FROM range(40000000) t(i)",
)  # fmt: skip
SLOW_POLICY = POLICY.replace(
    "  places: {public: true}\n",
    "  places: {public: true}\n  many:\n    unit: person\n    max_rows_per_unit: 10\n"
    "    foreign_keys: [{columns: [id], references: people}]\n"
    "    columns: {id: {type: bigint}, x: {type: bigint}}\n",
).replace("units:", "limits: {timeout_seconds: 1, threads: 1}\nunits:", 1)
LONG = "SELECT COUNT(DISTINCT x), SUM(LEAST(GREATEST(x % 7919, 0), 100)) FROM many WHERE x % 3 = 1"


def _slow() -> World:
    return World(SLOW, SLOW_POLICY)


@shows("what failed is given back", "the bill comes after the measurement")
def failed() -> bool:
    world = _slow()
    with world.opened() as connection:
        for _ in range(2):
            try:
                connection.execute(LONG)
            except dpsql.OperationalError:
                return spent(connection) == 0
    raise AssertionError("the question is not slow here")


@shows("answers leave although nothing was noted")
def unwritable() -> bool:
    world = World()
    with world.opened() as connection:
        connection.execute("SELECT COUNT(*) FROM people").fetchall()
        [place] = (p for p in world.folder.iterdir() if "ledger" in p.name and "-" not in p.name)
        other = sqlite3.connect(place, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            return bool(connection.execute("SELECT SUM(age) FROM people").fetchall())
        except dpsql.OperationalError:
            return False
        finally:
            other.execute("ROLLBACK")


@shows("an older copy of the ledger is taken")
def older() -> bool:
    world = World().under(("accounts:", "ledger: {head: head.txt}\naccounts:"))
    world.ask("SELECT COUNT(*) FROM people")
    names = [p for p in world.folder.iterdir() if "ledger" in p.name]
    kept = [(p, p.with_name(f"kept-{p.name}")) for p in names]
    for place, copy in kept:
        shutil.copy(place, copy)
    world.ask("SELECT SUM(age) FROM people")
    for place, copy in kept:
        shutil.copy(copy, place)
    return not refused(world, "SELECT SUM(pay) FROM people")


@shows("the data set is not charged")
def dataset() -> bool:
    with World().opened() as connection:
        connection.execute("SELECT COUNT(*) FROM people").fetchall()
        return spent(connection) == 0


AGAIN = ("SET dpsql.epsilon = 0.8", "SET dpsql.fresh = on", "SELECT COUNT(*) FROM people")


@shows("a session's account is new each time")
def session() -> bool:
    world = World(
        policy=limited("100", "1").replace("session: {epsilon: 100}", "session: {epsilon: 1}")
    )
    world.ask(*AGAIN)
    return not refused(world, *AGAIN)


@shows("a month is a day")
def month() -> bool:
    world = World(
        policy=limited("1", "1", ", per: month").replace(
            "dataset: {epsilon: 1,", "dataset: {epsilon: 100,"
        )
    )
    for day in (2, 3):
        with Service.open(
            world.path, clock=lambda at=day: dt.datetime(2030, 11, at, 12, tzinfo=dt.UTC)
        ) as service:  # type: ignore[misc]
            opened = service.session(name=f"s{day}")
            opened.execute("SET dpsql.epsilon = 0.8")
            opened.execute("SET dpsql.fresh = on")
            try:
                opened.execute("SELECT COUNT(*) FROM people")
            except dpsql.Error:
                return False
    return True


@shows("the last query is not looked at")
def last() -> bool:
    world = World(policy=limited("2", "1"))
    accepted = 0
    while accepted < 20 and not refused(world, *AGAIN):
        accepted += 1
    return accepted > 2


@shows("small charges are rounded down")
def small() -> bool:
    with World().opened() as connection:
        connection.execute("SET dpsql.epsilon = 0.0000000019")
        connection.execute("SELECT COUNT(*) FROM people").fetchall()
        return (
            float(connection.execute("SELECT epsilon FROM dpsql.ledger").fetchall()[0][0])
            < 0.0000000019
        )


@shows("a query has no limit of its own")
def cap() -> bool:
    world = World(policy=limited("1000", "1"))
    return not refused(world, "SET dpsql.epsilon = 100", "SELECT COUNT(*) FROM people")


@shows("what a killed process had begun is given back")
def killed() -> bool:
    world = _slow()
    place = world.path
    text = world.policy.replace("timeout_seconds: 1,", "timeout_seconds: 60,")
    place.write_text(text)
    code = f"import dpsql; c = dpsql.connect({str(place)!r}); print('open', flush=True); c.execute({LONG!r})"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(0.5)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    with world.opened() as connection:
        states = [row[2] for row in connection.execute("SELECT * FROM dpsql.ledger").fetchall()]
        assert states == ["forfeited"], states
        return spent(connection) == 0


@shows("delta may be spent twice")
def delta() -> bool:
    policy = POLICY.replace(
        "dataset: {epsilon: 1e9, delta: 1e-3}",
        "dataset: {epsilon: 1e9, delta: 1e-4, composition: zcdp}",
    )
    with World(policy=policy).opened() as connection:
        return (
            float(connection.execute("SELECT left_delta FROM dpsql.budget").fetchall()[0][0])
            > 0.9e-4
        )


@shows("new noise is free where an answer is stored")
def fresh() -> bool:
    with World().opened() as connection:
        connection.execute("SELECT COUNT(*) FROM people").fetchall()
        before = spent(connection)
        connection.execute("SET dpsql.fresh = on")
        connection.execute("SELECT COUNT(*) FROM people").fetchall()
        return spent(connection) == before
