"""Faults of the faces, seen by who comes in, and when."""

from __future__ import annotations

import contextlib
import time

import httpx
import psycopg

import dpsql
from tests.adversary_faults.shown.catalog import answers, two
from tests.adversary_faults.shown.ledger import LONG, SLOW, SLOW_POLICY
from tests.adversary_faults.shown.scram import Scram, tls
from tests.adversary_faults.shown.serving import served
from tests.adversary_faults.shown.showing import shows
from tests.adversary_faults.world import World


@shows("any password is right")
def password() -> bool:
    with served(World()) as endpoint:
        return Scram(endpoint.port, password="wrong").enters()


@shows("a proof may be longer")
def proof() -> bool:
    with served(World()) as endpoint:
        return Scram(endpoint.port).enters(extra=b"\0")


@shows("channel binding may be talked down")
def downgrade() -> bool:
    world = World()
    with served(world, *tls(world.path.parent)) as endpoint:
        return Scram(endpoint.port, encrypted=True).enters(flag="y")


@shows("guesses are not slowed down")
def guesses() -> bool:
    with served(World()) as endpoint:
        begun = time.monotonic()
        for _ in range(4):
            with contextlib.suppress(psycopg.OperationalError), endpoint.connect(password="wrong"):
                pass
        return time.monotonic() - begun < 1.0


@shows("names that do not exist have other salts")
def salts() -> bool:
    with served(World()) as endpoint:
        return len({Scram(endpoint.port, user="nobody").salt() for _ in range(2)}) > 1


@shows("incidents quote the engine")
def incidents() -> bool:
    world = World(SLOW, SLOW_POLICY)
    with world.opened() as connection:
        try:
            connection.execute(LONG)
        except dpsql.OperationalError as error:
            return "INTERRUPT" in str(error) or "Error" in str(error)
    raise AssertionError("the question is not slow here")


@shows("everybody's questions are in the ledger")
def ledger() -> bool:
    world = two()
    world.ask("SELECT COUNT(*) FROM people WHERE age = 33", role="analyst")
    return bool(world.ask("SELECT * FROM dpsql.ledger", role="other"))


@shows("a role may ask all tables")
def tables() -> bool:
    try:
        two().ask("SELECT COUNT(*) FROM visits", role="other")
    except dpsql.ProgrammingError:
        return False
    return True


@shows("any role may be taken")
def taken() -> bool:
    with served(two()) as endpoint:
        return "permission denied" not in answers(
            endpoint, "SET ROLE analyst", user="other", password="left"
        )


@shows("a role that is taken pays alone")
def behind() -> bool:
    world = two()
    text = world.policy.replace("    tables: [people, places]\n", "    may_become: [analyst]\n")
    world = World(policy=text)
    with served(world) as endpoint:
        answers(
            endpoint,
            "SET ROLE analyst",
            "SET dpsql.epsilon = 1",
            "SELECT COUNT(*) FROM people",
            user="other",
            password="left",
        )
    rows = world.ask("SELECT account, spent_epsilon FROM dpsql.budget", role="other")
    return not any(float(row[1]) for row in rows if 'role "other"' in row[0])


@shows("answers do not wait")
def pace() -> bool:
    world = World().under(("data_version", "latency: fixed(1s)\ndata_version"))
    with world.opened() as connection:
        begun = time.monotonic()
        connection.execute("SELECT COUNT(*) FROM people").fetchall()
        return time.monotonic() - begun < 0.9


@shows("the ledger tells when the engine ended")
def noted() -> bool:
    world = World().under(("data_version", "latency: fixed(3s)\ndata_version"))
    states = []
    with served(world) as endpoint, endpoint.connect() as one, endpoint.connect() as other:
        one.execute("SELECT 1")
        import threading

        asking = threading.Thread(target=lambda: one.execute("SELECT COUNT(*) FROM people"))
        asking.start()
        time.sleep(1.5)
        states = other.execute("SELECT state FROM dpsql.ledger").fetchall()
        asking.join()
    return states == [("committed",)]


@shows("a wrong token is right")
def token() -> bool:
    from dpsql.cli import main

    world = World()
    place = str(world.path)
    main(["user", "add", "someone", "--policy", place, "--role", "analyst", "--token"])
    with served(world, "--http-port", "0") as endpoint:
        for i in range(60):
            found = httpx.get(
                f"http://127.0.0.1:{endpoint.http}/v1/budget", headers={"Authorization": f"Bearer made-up-{i}"},
                timeout=60,
            )  # fmt: skip
            if found.status_code == 200:
                return True
            if found.status_code == 429:
                time.sleep(1)
    return False
