"""What may be asked of an engine about a policy: queries as values, whose text the engine makes."""

from __future__ import annotations

from typing import Protocol

from dpsql.engines.engine import Engine
from dpsql.ir.statements import Alias, Number, Query, Select, TableRows


class LookUps(Protocol):
    """What may be asked of an engine about the policy's declarations."""

    def is_empty(self, query: Query | str) -> bool:
        """Whether a query about what the policy declares has no row; all that is learnt of it.

        A text is one that the second check has made for itself.
        """
        ...

    def largest(self, query: Query) -> int:
        """The one number of a query about public tables."""
        ...

    def keep(self, name: str, table: str, rows: TableRows) -> bool:
        """Keep rows of a table, under a name of ``HEAVY``; False where it cannot."""
        ...


class SourceEngine(Engine, LookUps, Protocol):
    """The engine of a policy's data, which is also asked what the data keeps of the policy."""


def one_row(query: Query) -> Query:
    """A query with one row if another has some: no more need be read to know whether it is empty."""
    return Select(Alias(query, "b"), (("v", Number(1)),), limit=1)
