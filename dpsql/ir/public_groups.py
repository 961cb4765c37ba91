"""Public groups as values: lists of constants and of public rows, and their combinations.

No node reads a private row. An engine's writer makes SQL of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from dpsql.ir.expressions import Column, Expression
from dpsql.ir.relations import Relation
from dpsql.policy.types import Kind, Scalar


@dataclass(frozen=True, slots=True)
class Members:
    """Constants of one kind, one by one."""

    kind: Kind
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class WholeNumbers:
    """All whole numbers from ``first`` to ``last``, as values of a kind; none if there are none."""

    kind: Kind
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Days:
    """All days from ``first`` to ``last``; none if ``last`` is before."""

    first: date
    last: date


@dataclass(frozen=True, slots=True)
class Periods:
    """The starts of periods of a calendar unit, from ``low`` to ``high``, as values of a kind.

    ``first`` is the start of the period that contains ``low``. It may be before ``low``.
    """

    kind: Kind
    unit: str
    first: datetime
    low: datetime
    high: datetime


@dataclass(frozen=True, slots=True)
class ValueList:
    """A column with each of these values once, and also with NULL if it is ``nullable``."""

    column: Column
    values: Members | WholeNumbers | Days | Periods
    nullable: bool


@dataclass(frozen=True, slots=True)
class RowList:
    """The distinct rows of a public relation over some of its columns.

    ``columns`` pairs each column of the list with its column of ``relation``. ``number`` tells
    lists apart. An ``optional`` list has a row of NULLs too.
    """

    number: int
    relation: Relation
    columns: tuple[tuple[Column, Column], ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class Combinations:
    """The values of some keys, over all combinations of the lists' rows where ``conditions`` hold.

    ``keys`` has the positions of the keys, with expressions over the columns of the lists.
    ``distinct`` says that two combinations may give the same values.
    """

    lists: tuple[ValueList | RowList, ...]
    keys: tuple[tuple[int, Expression], ...]
    conditions: tuple[Expression, ...]
    distinct: bool


@dataclass(frozen=True, slots=True)
class PublicGroups:
    """Groups as all combinations of the values of the parts, in the order of ``keys``.

    ``keys`` are the names of the columns: ``k0``, ``k1`` and so on.
    """

    parts: tuple[Combinations, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GivenGroups:
    """Groups as a table ``name`` that was read before. Its columns are the keys."""

    name: str
    keys: tuple[str, ...]
