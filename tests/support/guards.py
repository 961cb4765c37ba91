"""The second check, for tests of one rule at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpsql.engines.duckdb.guard import Guard
from dpsql.engines.duckdb.guard.seen import strays
from dpsql.policy.model import Policy


def keyed(policy: Policy) -> Guard:
    """A guard that takes each row to have its unit: for statements that fail by other rules."""
    made = Guard(policy)
    made._tables = {place: replace(t, strays=False) for place, t in made._tables.items()}
    return made


def led(policy: Policy) -> Callable[[str], bool]:
    """What is seen of data of which each row leads to its unit, and nothing else is known."""
    queries = {query for _, query in strays(policy)}
    return lambda query: query in queries
