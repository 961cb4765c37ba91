"""The choice of the alternative to run, by facts that were looked up when the data was opened.

It makes no statement: all that may run are part of the statement, which EXPLAIN shows. The facts
were looked up before any question (``engines.verify``), by queries that the policy alone makes. So
no question makes the engine compare data with declarations.
"""

from __future__ import annotations

from typing import assert_never

from dpsql.declarations.queries import (
    has_too_many_to_add,
    has_unowned_rows,
    units_over_limit,
    values_out_of_range,
)
from dpsql.effort import pause_counting
from dpsql.engines.duckdb.write import write
from dpsql.engines.facts import Facts
from dpsql.ir.alternatives import (
    Alternative,
    FewRows,
    OverLimitRowsKept,
    Requirement,
    RowsHaveUnits,
    Statement,
    UnitsWithinLimit,
    ValuesInRange,
)
from dpsql.ir.statements import Query
from dpsql.policy.model import Policy


class StatementChooser:
    """Chooses the first alternative whose requirements hold. Safe to use from several threads."""

    def __init__(self, policy: Policy, facts: Facts) -> None:
        """``facts`` has the outcomes of look-ups in the policy's tables."""
        self._policy, self._facts = policy, facts
        self._known: dict[Requirement, bool] = {}
        """The requirements known to hold or not: at most a few for each table and column."""

    def choose(self, statement: Statement) -> Alternative | None:
        """The cheapest alternative that the data allows; None if it allows none."""
        may_run = (a for a in statement.alternatives if all(map(self._holds, a.requires)))
        return next(may_run, None)

    def _holds(self, requirement: Requirement) -> bool:
        known = self._known.get(requirement)
        if known is None:
            with pause_counting():  # the steps must not show whether somebody asked before
                known = self._known[requirement] = self._look_up(requirement)
        return known

    def _look_up(self, requirement: Requirement) -> bool:
        """Whether a requirement holds. It does not if it was not looked up."""
        table = self._policy.tables[requirement.table]
        match requirement:
            case RowsHaveUnits():
                return self._finds_none(has_unowned_rows(table))
            case UnitsWithinLimit(most=most):  # looked up with the policy's own limit
                within = most >= table.max_rows_per_unit
                return within and self._finds_none(units_over_limit(table))
            case OverLimitRowsKept(name=name):
                return name in self._facts.kept
            case ValuesInRange(column=column):
                return self._finds_none(values_out_of_range(table, column))
            case FewRows():
                return self._finds_none(has_too_many_to_add(table))
            case _:
                assert_never(requirement)

    def _finds_none(self, query: Query) -> bool:
        """Whether a query was looked up, and has no row."""
        return self._facts.hold(write(query))
