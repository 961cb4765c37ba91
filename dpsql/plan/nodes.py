"""A plan: measurements below the frontier, plain SQL above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from dpsql.aggregates.statistic import Statistic
from dpsql.sql.expressions import Column, Expression
from dpsql.sql.relations import Private, Relation
from dpsql.sql.terms import Terms


class Enumerator(Protocol):
    """Evaluates generated SQL over constants only, in an engine that holds no data."""

    def count(self, sql: str) -> int:
        """How many rows the query has."""
        ...


@dataclass(frozen=True, slots=True)
class Cells:
    """The public groups of a measurement, as a query over constants, sorted by key.

    ``open`` has the positions of keys with values that rows may have and that are in no group.
    """

    sql: str
    count: int
    open: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Lifted:
    """The rows of a measurement and others, as they are read where time must not tell.

    Rows count where ``kept`` holds; None: all do.
    """

    input: Relation
    kept: Column | None


@dataclass(frozen=True, slots=True)
class UnitCount:
    """The number of units of each group: its position among statistics.

    ``least`` names the parameter that groups are compared with: see ``plan.empty_groups``.
    """

    position: int
    least: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """Statistics of private rows by group: what noise is added to.

    ``cells`` None means that groups are not public and must pass a threshold. ``columns`` are
    the released columns, one for each statistic. ``lifted`` is how the engine reads ``input``
    under strict timing; it changes no answer. ``unit_count`` is there where groups without rows
    must not take part in what is computed above.
    """

    name: str
    input: Relation
    privacy: Private
    keys: tuple[Expression, ...]
    key_fields: tuple[Column, ...]
    cells: Cells | None
    statistics: tuple[Statistic, ...]
    columns: tuple[Column, ...]
    terms: Terms | None = None
    lifted: Lifted | None = None
    unit_count: UnitCount | None = None


@dataclass(frozen=True, slots=True)
class PublicQuery:
    """Public rows that the answer needs: read exactly, for free.

    ``sql`` names its columns as ``fields`` are aliased. It reads public tables, or only constants:
    the public groups of a GROUP BY without aggregates.
    """

    name: str
    sql: str
    fields: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Lookup:
    """A subquery whose result is used as a constant: released or public before it is needed.

    Its form ``rows`` is a whole relation that private rows are joined with. ``relation`` reads
    stored tables only. ``after`` is the number of measurements that are
    released by then; a statement that uses it comes later.
    """

    name: str
    form: Literal["in", "exists", "scalar", "rows"]
    relation: Relation
    column: Column | None
    after: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured, what is read as it is, and what is then computed from both.

    ``output`` reads only ``Stored`` tables named after the measurements and public queries.
    ``notes`` tell a reader which parts of the answer are the policy's word and not the data's.
    """

    measurements: tuple[Measurement, ...]
    publics: tuple[PublicQuery, ...]
    output: Relation
    columns: tuple[Column, ...]
    lookups: tuple[Lookup, ...] = ()
    notes: tuple[str, ...] = ()
