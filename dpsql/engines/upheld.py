"""What the data keeps of what the policy declares: looked up once, while a file is open.

A database is opened read-only and locked by the engine, so that nobody writes to it meanwhile. The
queries here are made of the policy alone, before any analyst asks; what they find decides which
of several statements runs that give the same integers (``plan.upheld``), and leaves this module as
nothing else.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator

from dpsql.diagnostics.refusal import EngineFailed
from dpsql.engines.engine import LookUps
from dpsql.plan.added import Light
from dpsql.plan.kept import (
    beyond,
    crowded,
    heavy,
    many,
    shared_key,
    shared_steps,
    too_many,
    unowned,
)
from dpsql.plan.priced import PricedMeasurement
from dpsql.plan.upheld import Lighter, lighter_of
from dpsql.policy.model import Policy, Table

MOST_STATEMENTS = 2_000
"""Statements whose lighter form is remembered."""


class Upheld:
    """The statement to run for a measurement. Safe to use from several threads."""

    def __init__(self, policy: Policy, engine: LookUps) -> None:
        """Nothing is looked up yet; ``engine`` is asked about declarations alone."""
        self._policy, self._engine = policy, engine
        self._lock, self._keeping = threading.Lock(), threading.Lock()
        self._found: dict[str, bool] = {}
        self._kept: dict[str, bool] = {}
        self._chosen: OrderedDict[str, str] = OrderedDict()

    def statement(self, part: PricedMeasurement) -> str:
        """The lightest that gives the same integers as the measurement's own."""
        with self._lock:
            if part.sql in self._chosen:
                self._chosen.move_to_end(part.sql)
                return self._chosen[part.sql]
        lighter = lighter_of(part)
        chosen = part.sql if lighter is None else self._lightest(lighter)
        with self._lock:
            self._chosen[part.sql] = chosen
            if len(self._chosen) > MOST_STATEMENTS:
                self._chosen.popitem(last=False)
        return chosen

    def _lightest(self, lighter: Lighter) -> str:
        if not all(map(self._holds, self._needed(lighter))):
            return lighter.part.sql
        tables, table, kept = self._policy.tables, lighter.counted.table, None
        if lighter.spared and not self._holds(too_many(table)):
            kept = self._heavy(table) if lighter.apart else None
            if kept is None:
                return lighter.part.sql
        within = frozenset(
            at for at, (name, column) in lighter.ranges.items()
            if self._holds(beyond(tables[name], column))
        )  # fmt: skip
        return lighter.sql(Light(self._holds(many(table)), within), kept)

    def _needed(self, lighter: Lighter) -> Iterator[str]:
        tables, table = self._policy.tables, lighter.counted.table
        yield from map(shared_key, (tables[name] for name in sorted(lighter.keyed)))
        if lighter.spared and table.path:
            yield from shared_steps(table)
            yield unowned(table)

    def _heavy(self, table: Table) -> str | None:
        """The name under which rows of units with too many are kept; None where they are not."""
        if not self._holds(crowded(table)):
            return None
        name, sql = heavy(table)
        with self._keeping:  # others go on with what they have been told to run
            if name not in self._kept:
                self._kept[name] = self._engine.keep(name, table.name, sql)
            return name if self._kept[name] else None

    def _holds(self, query: str) -> bool:
        """Whether nothing was found. What could not be looked up is not asked again, and not relied on."""
        found = self._found.get(query)
        if found is None:
            try:
                found = self._engine.finds_none(query)
            except EngineFailed:
                found = False
            self._found[query] = found
        return found
