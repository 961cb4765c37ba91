"""Faults of the catalog, seen by a client of the wire."""

from __future__ import annotations

import psycopg

from tests.adversary_faults.shown.serving import Served, served
from tests.adversary_faults.shown.showing import shows
from tests.adversary_faults.world import POLICY, World

CANARY = "canary-5f0c"
OTHER = POLICY.replace(
    "    max_groups_per_unit: 2\n",
    """    max_groups_per_unit: 2
  other:
    password: "left"
    epsilon: 10
    delta: 1e-5
    tables: [people, places]
""",
)


def two() -> World:
    """A policy with a second role, which does not see visits."""
    return World(policy=OTHER)


def answers(
    endpoint: Served, *statements: str, user: str = "analyst", password: str = "right"
) -> str:
    """What a client is told of some statements, rows and errors."""
    told = []
    with endpoint.connect(user, password) as connection:
        for statement in statements:
            try:
                told.append(str(connection.execute(statement).fetchall()))
            except psycopg.Error as error:
                told.append(str(error))
    return "\n".join(told)


@shows("files are read through the catalog")
def functions() -> bool:
    world = World()
    (world.path.parent / "c.csv").write_text(f"a,b\n{CANARY},2\n")
    place = world.path.parent / "c.csv"
    with served(world) as endpoint:
        return CANARY in answers(
            endpoint, f"SELECT * FROM read_csv('{place}')", f"SELECT * FROM read_text('{place}')"
        )


@shows("a text is a relation of the catalog")
def relations() -> bool:
    world = World()
    (world.path.parent / "c.csv").write_text(f"a,b\n{CANARY},2\n")
    place = world.path.parent / "c.csv"
    with served(world) as endpoint:
        return CANARY in answers(endpoint, f"SELECT * FROM '{place}'")


@shows("functions of the engine are called by another name")
def dotted() -> bool:
    with served(World()) as endpoint:
        told = answers(
            endpoint,
            "SELECT * FROM main.duckdb_settings()",
            "SELECT main.version()",
            "SELECT system.main.version()",
        )
    return "does not exist" not in told.splitlines()[0] or "v1." in told or "v2." in told


@shows("anybody's session may be ended")
def ended() -> bool:
    with served(two()) as endpoint, endpoint.connect("other", "left") as other:
        number = other.info.backend_pid
        return "True" in answers(endpoint, f"SELECT pg_terminate_backend({number})")


@shows("others' statements are shown")
def activity() -> bool:
    with served(two()) as endpoint, endpoint.connect("other", "left") as other:
        other.execute("SELECT 'nobody else may see this' FROM pg_class")
        return "nobody else" in answers(endpoint, "SELECT query FROM pg_stat_activity")


@shows("tables of other roles are listed")
def listed() -> bool:
    with served(two()) as endpoint:
        asked = "SELECT relname FROM pg_class WHERE relname = 'visits'"
        return "[('visits',)]" in answers(endpoint, asked, user="other", password="left")


@shows("the engine's words are a client's")
def words() -> bool:
    with served(World()) as endpoint:
        told = answers(
            endpoint,
            "SELECT CAST('a' AS INTEGER)",
            "SELECT relname::int FROM pg_class",
            "SELECT relname + 1 FROM pg_class",
        )
    return "Error:" in told
