"""A plan: measurements below the frontier, plain SQL above it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, Protocol

import pyarrow as pa

from dpsql.catalog.statistic import Statistic
from dpsql.ir.expressions import Column, Expression
from dpsql.ir.privacy_clause import Terms
from dpsql.ir.public_groups import Combinations, GivenGroups, PublicGroups, RowList
from dpsql.ir.relations import Private, Relation


class Enumerator(Protocol):
    """Evaluates the lists of constants and of public rows that make public groups."""

    def count(self, part: Combinations) -> int:
        """The number of combinations of constants, computed by an engine that holds no data."""
        ...

    def count_public(self, part: Combinations | RowList) -> int:
        """The number of rows of a list that reads public tables."""
        ...

    def read_public(self, groups: PublicGroups) -> PublicRows:
        """The groups that public tables list."""
        ...


@dataclass(frozen=True, slots=True)
class PublicRows:
    """Rows of public tables of the data that is open. Equal digests mean equal rows."""

    table: pa.Table = field(compare=False)
    digest: str


@dataclass(frozen=True, slots=True)
class Cells:
    """The public groups of a measurement, as lists of constants and of public rows.

    ``open`` has the positions of keys for which rows may have values that are in no group. ``rows``
    are the groups themselves if public tables are read, and None otherwise. ``tied`` are those of
    the ``open`` keys whose combinations a foreign key lists.
    """

    groups: PublicGroups
    count: int
    open: frozenset[int] = frozenset()
    rows: PublicRows | None = None
    tied: frozenset[int] = frozenset()

    @property
    def identity(self) -> PublicGroups | str:
        """A value that is equal only for equal groups, now and later."""
        return self.groups if self.rows is None else self.rows.digest

    def beside(self) -> tuple[PublicGroups | GivenGroups, dict[str, pa.Table]]:
        """The groups for an engine without the public tables, and the tables to pass with them."""
        if self.rows is None:
            return self.groups, {}
        given = GivenGroups("listed_groups", tuple(self.rows.table.column_names))
        return given, {given.name: self.rows.table}


@dataclass(frozen=True, slots=True)
class Lifted:
    """The rows of a measurement and others, as they are read under strict timing.

    Rows count where ``kept`` holds. None means that all rows count.
    """

    input: Relation
    kept: Column | None


@dataclass(frozen=True, slots=True)
class UnitCount:
    """The position of the number of units of each group among the statistics.

    ``least`` names the parameter that the number is compared with: see ``plan.empty_groups``.
    """

    position: int
    least: str


@dataclass(frozen=True, slots=True)
class HiddenMean:
    """A mean that is NULL where noise alone may decide it: see ``plan.noise_alone``.

    ``total`` and ``count`` are positions of statistics. ``half`` is half the width of the range of
    the values. ``width`` names the parameter with the half width of the noise.
    """

    total: int
    count: int
    half: Fraction
    width: str


@dataclass(frozen=True, slots=True)
class HiddenRank:
    """A value chosen by its rank that is NULL where noise alone may decide it.

    ``value`` and ``count`` are positions of statistics. ``width`` names the parameter with the
    number of rows up to which the rank may be any.
    """

    value: int
    count: int
    width: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """Statistics of private rows by group, to which noise is added.

    ``cells`` None means that groups are not public and must pass a threshold. ``columns`` are
    the released columns, one for each statistic. ``lifted`` is how the engine reads ``input``
    under strict timing; it changes no answer. ``unit_count`` is set where groups without rows must
    not take part in the operators above. ``hidden`` are the values that may be NULL.
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
    hidden: tuple[HiddenMean | HiddenRank, ...] = ()


@dataclass(frozen=True, slots=True)
class PublicQuery:
    """Public rows that the answer needs. They are read exactly, and cost nothing.

    The ``source`` is a relation over public tables, of which ``fields`` are read, or the public
    groups of a GROUP BY without aggregates, whose keys are ``fields``. ``contents`` are the content
    numbers of the public tables.
    """

    name: str
    source: Relation | PublicGroups
    fields: tuple[Column, ...]
    contents: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Lookup:
    """A subquery whose result is used as a constant. It is released or public before it is needed.

    The form ``rows`` is a whole relation that private rows are joined with. ``relation`` reads
    stored tables only. ``after`` is the number of measurements that are released before the lookup.
    A statement that uses the result runs later.
    """

    name: str
    form: Literal["in", "exists", "scalar", "rows"]
    relation: Relation
    column: Column | None
    after: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The measurements and public queries of a question, and the output computed from both.

    ``output`` reads only ``Stored`` tables named after the measurements and public queries.
    ``notes`` tell a reader which parts of the answer come from the policy and not from the data.
    ``clamped`` are those on values that count as an end of their range.
    """

    measurements: tuple[Measurement, ...]
    publics: tuple[PublicQuery, ...]
    output: Relation
    columns: tuple[Column, ...]
    lookups: tuple[Lookup, ...] = ()
    notes: tuple[str, ...] = ()
    clamped: tuple[str, ...] = ()
