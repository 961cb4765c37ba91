"""A plan: measurements below the frontier, plain SQL above it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import pyarrow as pa

from dpsql.catalog.statistic import Statistic
from dpsql.ir.expressions import Column, Expression
from dpsql.ir.privacy_clause import Terms
from dpsql.ir.public_groups import Combinations, GivenGroups, PublicGroups, RowList
from dpsql.ir.relations import Private, Relation


class Enumerator(Protocol):
    """Evaluates lists of constants and of public rows, for the groups that they make."""

    def count(self, part: Combinations) -> int:
        """How many rows combinations of constants have; an engine that holds no data is asked."""
        ...

    def count_public(self, part: Combinations | RowList) -> int:
        """How many rows a list has that reads public tables."""
        ...

    def read_public(self, groups: PublicGroups) -> PublicRows:
        """Groups that public tables list."""
        ...


@dataclass(frozen=True, slots=True)
class PublicRows:
    """Rows of public tables as they are in the data that is open; equal digests mean equal rows."""

    table: pa.Table = field(compare=False)
    digest: str


@dataclass(frozen=True, slots=True)
class Cells:
    """The public groups of a measurement, as lists of constants and of public rows.

    ``open`` has the positions of keys with values that rows may have and that are in no group.
    ``rows`` are the groups themselves where public tables are read, and so means nothing where
    those are not. Of the ``open`` keys ``tied`` are those whose combinations a foreign key lists.
    """

    groups: PublicGroups
    count: int
    open: frozenset[int] = frozenset()
    rows: PublicRows | None = None
    tied: frozenset[int] = frozenset()

    @property
    def identity(self) -> PublicGroups | str:
        """Equal ones mean equal groups, now and later."""
        return self.groups if self.rows is None else self.rows.digest

    def beside(self) -> tuple[PublicGroups | GivenGroups, dict[str, pa.Table]]:
        """The groups where no public table is, and the tables that are read instead."""
        if self.rows is None:
            return self.groups, {}
        given = GivenGroups("listed_groups", tuple(self.rows.table.column_names))
        return given, {given.name: self.rows.table}


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

    Of a relation over public tables ``fields`` are read. Groups are those of a GROUP BY without
    aggregates: ``fields`` are their keys. ``contents`` say which rows the public tables have.
    """

    name: str
    source: Relation | PublicGroups
    fields: tuple[Column, ...]
    contents: tuple[object, ...] = ()


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
