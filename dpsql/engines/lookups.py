"""The interface for look-ups about a policy: queries as values, whose text the engine makes."""

from __future__ import annotations

from typing import Protocol

from dpsql.engines.engine import Engine
from dpsql.ir.statements import Alias, Number, Query, Select, TableRows


class LookUps(Protocol):
    """An engine that can be asked about the policy's declarations."""

    def is_empty(self, query: Query | str) -> bool:
        """Whether a query about the policy's declarations has no row. Nothing else of it is learnt.

        A query as text is one that the second check has made for itself.
        """
        ...

    def largest(self, query: Query) -> int:
        """The one number of a query about public tables."""
        ...

    def keep(self, name: str, table: str, rows: TableRows) -> bool:
        """Keep rows of a table, under a name in ``OVER_LIMIT_CATALOG``; False if it cannot."""
        ...


class SourceEngine(Engine, LookUps, Protocol):
    """The engine of a policy's data, which also answers look-ups about its declarations."""


def one_row(query: Query) -> Query:
    """A query with one row if another has rows. To know that, no more than one need be read."""
    return Select(Alias(query, "b"), (("v", Number(1)),), limit=1)
