"""The statement to run for a measurement, by what was looked up of the data when it was opened.

What was found decides which of several statements runs that give the same integers
(``rewrite.shortcut``). It was looked up before any question (``engines.verify``), by queries that the
policy alone makes, so that no question makes the engine compare data with declarations.
"""

from __future__ import annotations

from dpsql.bound.rows import Light
from dpsql.declarations.queries import (
    has_too_many_to_add,
    has_unowned_rows,
    units_over_limit,
    values_out_of_range,
)
from dpsql.effort import pause_counting
from dpsql.engines.duckdb.statements import sql_of
from dpsql.engines.duckdb.write import write
from dpsql.engines.facts import Facts
from dpsql.engines.kept_rows import name_kept_rows
from dpsql.ir.statements import Query
from dpsql.memory.cache import Cache
from dpsql.memory.pool import Use
from dpsql.policy.model import Policy, Table
from dpsql.price.priced import PricedMeasurement
from dpsql.rewrite.shortcut import Lighter, lighter_of

MOST_STATEMENTS = 2_000
"""Statements whose lighter form is remembered."""


class Upheld:
    """The statement to run for a measurement. Safe to use from several threads; reads no data."""

    def __init__(self, policy: Policy, facts: Facts) -> None:
        """``facts`` is what was found of the policy's tables."""
        self._policy, self._facts = policy, facts
        self._chosen = Cache[str, str](Use.CACHED_CHECKS, MOST_STATEMENTS)

    def statement(self, part: PricedMeasurement) -> str:
        """The lightest that gives the same integers as the measurement's own."""
        own = sql_of(part)
        chosen = self._chosen.get(own)
        if chosen is None:
            with pause_counting():  # no more work than the own statement was
                lighter = lighter_of(part)
                shortcut = None if lighter is None else self._lightest(lighter)
                chosen = own if shortcut is None else write(shortcut)
            self._chosen.put(own, chosen)
        return chosen

    def _lightest(self, lighter: Lighter) -> Query | None:
        """The statement that the data allows; None where it is the measurement's own."""
        tables, table, kept = self._policy.tables, lighter.counted.table, None
        if lighter.spared and table.path and not self._finds_none(has_unowned_rows(table)):
            return None
        several = table.max_rows_per_unit > 1  # that a unit has one row only is verified
        if lighter.spared and several and not self._finds_none(units_over_limit(table)):
            kept = self._heavy(table) if lighter.apart else None
            if kept is None:
                return None
        within = frozenset(
            at for at, (name, column) in lighter.ranges.items()
            if self._finds_none(values_out_of_range(tables[name], column))
        )  # fmt: skip
        return lighter.query(Light(self._finds_none(has_too_many_to_add(table)), within), kept)

    def _heavy(self, table: Table) -> str | None:
        """The name under which rows of units with too many are kept; None where they are not."""
        name = name_kept_rows(table)
        return name if name in self._facts.kept else None

    def _finds_none(self, query: Query) -> bool:
        """Whether a query was looked up, and has no row."""
        return self._facts.hold(write(query))
