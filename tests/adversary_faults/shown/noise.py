"""Faults of noise, seen in many draws of a known law."""

from __future__ import annotations

import re
import statistics

from tests.adversary_faults.shown.showing import shows
from tests.adversary_faults.world import World, explained

SPARSE = World().under(
    ("day: {type: integer, range: [0, 39]}", "day: {type: integer, range: [0, 3999]}")
)
"""Four thousand groups, all but forty of them empty."""


def draws(*settings: str, world: World = SPARSE) -> tuple[list[float], float]:
    """Released numbers of empty groups, and the deviation that EXPLAIN gives for their noise."""
    question = "SELECT day, COUNT(*) FROM visits GROUP BY day"
    with world.opened() as connection:
        for setting in ("epsilon = 1", *settings):
            connection.execute(f"SET dpsql.{setting}")
        text = explained(connection, question)
        rows = connection.execute(question).fetchall()
    found = re.search(r"Laplace, scale ([\d.e+-]+)", text)
    deviation = float(found[1]) * 2**0.5 if found else 0.0
    found = re.search(r"Gaussian, deviation ([\d.e+-]+)", text)
    deviation = float(found[1]) if found else deviation
    return [float(n) for day, n in rows if day >= 40], deviation


@shows("laplace noise is three quarters as wide")
def laplace() -> bool:
    numbers, deviation = draws()
    return statistics.pstdev(numbers) < 0.88 * deviation


@shows("gaussian noise has half of its variance")
def gaussian() -> bool:
    numbers, deviation = draws("mechanism = 'gaussian'", "delta = 1e-6")
    return statistics.pstdev(numbers) < 0.85 * deviation


@shows("all groups have the same noise")
def same() -> bool:
    return len(set(draws()[0])) == 1


@shows("no noise is added to nothing")
def nothing() -> bool:
    return not any(draws()[0])


@shows("noise is never negative")
def negative() -> bool:
    return min(draws()[0]) >= 0


@shows("a released number is rounded to nothing")
def rounded() -> bool:
    return statistics.fmean(draws("epsilon = 10")[0]) < -0.25


@shows("negative counts are hidden unasked")
def hidden() -> bool:
    return min(draws()[0]) >= 0


@shows("both halves have the same noise")
def halves() -> bool:
    world = World()
    rows = world.ask(
        "SET dpsql.epsilon = 0.1", "SELECT day, SUM(secs), COUNT(*) FROM visits GROUP BY day"
    )
    off = [abs(float(total) - 30 * float(count) - _exact(day)) for day, total, count in rows]
    return max(off) < 1


def _exact(day: int) -> float:
    return float(sum(i % 60 - 30 for i in range(5000) if i % 40 == day))


@shows("noise repeats with the process")
def repeats() -> bool:
    again = World().under(
        ("day: {type: integer, range: [0, 39]}", "day: {type: integer, range: [0, 3999]}")
    )
    return draws()[0] == draws(world=again)[0]


@shows("groups of one person are shown")
def alone() -> bool:
    world = World().having("UPDATE people SET city = 'only' WHERE id = 7")
    rows = world.ask("SET dpsql.epsilon = 1", "SELECT city, COUNT(*) FROM people GROUP BY city")
    shown = [row[0] for row in rows]
    return "only" in shown or len(shown) > 3 or _some(world)


def _some(world: World) -> bool:
    question = "SELECT city, COUNT(*) FROM people GROUP BY city"
    return any(
        "only"
        in [row[0] for row in world.ask("SET dpsql.fresh = on", "SET dpsql.epsilon = 1", question)]
        for _ in range(10)
    )


@shows("thresholds are for a thousand times delta")
def lower() -> bool:
    with World().opened() as connection:
        connection.execute("SET dpsql.epsilon = 1")
        connection.execute("SET dpsql.delta = 1e-6")
        text = explained(connection, "SELECT city, COUNT(*) FROM people GROUP BY city")
    return int(text.partition("threshold of ")[2].split()[0]) < 14


@shows("a value is chosen by rank alone")
def rank() -> bool:
    world = World()
    with world.opened() as connection:
        connection.execute("SET dpsql.epsilon = 0.02")
        connection.execute("SET dpsql.fresh = on")
        question = "SELECT MEDIAN(age) FROM people"
        found = [float(connection.execute(question).fetchall()[0][0]) for _ in range(20)]
    return max(found) - min(found) < 2


@shows("groups stand as the engine found them")
def order() -> bool:
    world = World()
    rows = world.ask("SELECT age, city, COUNT(*) FROM people GROUP BY age, city")
    keys = [row[:2] for row in rows]
    return bool(keys) and keys != sorted(keys)


@shows("intervals are half as wide")
def intervals() -> bool:
    question = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
    rows = SPARSE.ask("SET dpsql.epsilon = 1", "SET dpsql.intervals = on", question)
    empty = [row for row in rows if row[0] >= 40]
    missed = sum(not float(row[2]) <= 0 <= float(row[3]) for row in empty)
    return missed > 0.1 * len(empty)
