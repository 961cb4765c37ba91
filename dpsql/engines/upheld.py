"""What the data keeps of what the policy declares: looked up once, while a file is open.

A database is opened read-only and locked by the engine, so that nobody writes to it meanwhile. The
queries here are made of the policy alone, before any analyst asks; what they find decides which
of two statements runs that give the same integers (``plan.upheld``), and leaves this module as nothing
else.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator

from dpsql.engines.engine import Engine
from dpsql.plan.priced import PricedMeasurement
from dpsql.plan.upheld import Unweighed, shared_key, shared_steps, too_many, unweighed_of
from dpsql.policy.model import Policy

MOST_STATEMENTS = 2_000
"""Statements whose lighter form is remembered."""


class Upheld:
    """The statement to run for a measurement. Safe to use from several threads."""

    def __init__(self, policy: Policy, engine: Engine) -> None:
        """Nothing is looked up yet; ``engine`` is asked about declarations alone."""
        self._policy, self._engine = policy, engine
        self._lock = threading.Lock()
        self._found: dict[str, bool] = {}
        self._lighter: OrderedDict[str, Unweighed | None] = OrderedDict()

    def statement(self, part: PricedMeasurement) -> str:
        """The one without weights where that gives the same integers, else the measurement's."""
        lighter = self._unweighed(part)
        if lighter is None or not all(map(self._holds, self._asked(lighter))):
            return part.sql
        return lighter.sql

    def _unweighed(self, part: PricedMeasurement) -> Unweighed | None:
        with self._lock:
            if part.sql in self._lighter:
                self._lighter.move_to_end(part.sql)
                return self._lighter[part.sql]
        found = unweighed_of(part)
        with self._lock:
            self._lighter[part.sql] = found
            if len(self._lighter) > MOST_STATEMENTS:
                self._lighter.popitem(last=False)
        return found

    def _asked(self, lighter: Unweighed) -> Iterator[str]:
        tables = self._policy.tables
        yield from map(shared_key, (tables[name] for name in sorted(lighter.keyed)))
        yield from shared_steps(tables[lighter.table])
        yield too_many(tables[lighter.table])

    def _holds(self, query: str) -> bool:
        found = self._found.get(query)
        if found is None:
            found = self._found[query] = self._engine.finds_none(query)
        return found
