"""Faults of the bound on what a unit adds to all groups together: seen by one busy person."""

from __future__ import annotations

from tests.adversary_faults.shown.showing import shows
from tests.adversary_faults.world import World, explained, moved, reaches

PLAIN = ("SET dpsql.search = off", "SET dpsql.epsilon = 10000", "SET dpsql.mechanism = 'laplace'")
SUMS = "SELECT day, COUNT(DISTINCT id), SUM(secs) FROM visits GROUP BY day"
PEOPLE = "SELECT day, SUM(secs), COUNT(DISTINCT id) FROM visits GROUP BY day"


def _beyond(question: str) -> bool:
    """Whether a person with a visit on each of 40 days moves the last numbers further than is priced."""
    busy = World().visited("'a', 60, i FROM range(40) t(i)")
    with busy.opened() as connection:
        for setting in PLAIN:
            connection.execute(setting)
        text = explained(connection, question)
    assert "vector clip" in text, text
    return moved(busy, World(), *PLAIN, question) > 1.01 * reaches(text)[-1]


@shows("a vector is as long as it has numbers")
def lengths() -> bool:
    return _beyond(SUMS)


@shows("a limit that was found is only priced")
def unscaled() -> bool:
    return _beyond(SUMS)


@shows("a unit in many groups counts in each in full")
def people() -> bool:
    return _beyond(PEOPLE)
