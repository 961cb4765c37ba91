"""What a record says of an aggregate.

No field has a default: what a record does not say is a TypeError when it is made, never an assumption.

Syntax nodes are named by the class that the parser makes of a call, and ``sql.nodes`` looks the
names up: the parser's classes do not leave ``dpsql.sql``, and a name that the parser does not know
stops the import.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from dpsql.catalog.statistic import Lowered
from dpsql.ir.expressions import Aggregated, Expression, Shape
from dpsql.ir.relations import Private
from dpsql.policy.types import Kind

ANY_KIND = frozenset(Kind)
NUMBERS = frozenset({Kind.INTEGER, Kind.DOUBLE})
CONDITIONS = frozenset({Kind.BOOLEAN})
RANKED = NUMBERS | {kind for kind in Kind if kind.temporal}
"""Kinds with an order in which an error can be measured."""
LISTED = RANKED | {Kind.TEXT, Kind.BOOLEAN}
"""These, and kinds whose values a policy can list."""

EVERY_DIALECT = ("duckdb", "bigquery", "snowflake")
"""Input dialects beside PostgreSQL."""


class Form(Enum):
    """How a call says what it is about."""

    VALUES = auto()
    """``SUM(x)``, ``CORR(x, y)``: its arguments."""
    CONDITION = auto()
    """``COUNT_IF(c)``: the rows where the condition holds, as with FILTER."""
    DIFFERENT = auto()
    """``APPROX_COUNT_DISTINCT(x)``: different values, as with DISTINCT."""
    RANK = auto()
    """``MEDIAN(x)``, ``QUANTILE(x, f)``: the value at a fraction."""
    RANKS = auto()
    """``APPROX_QUANTILES(x, n)``: a list of values at fractions."""


class Needs(Enum):
    """What must be known in public of each argument over private rows, so that noise covers a unit."""

    NOTHING = auto()
    BOUNDS = auto()
    """Two finite numbers that the value lies between."""
    POSITIVE_BOUNDS = auto()
    """The same, both above 0."""
    RANGE_OR_LIST = auto()
    """Two ends that the value lies between; for kinds without an order, a list of its values."""
    LIST = auto()
    """A list of its values."""


class Distinct(Enum):
    """What DISTINCT means over private rows."""

    COUNTS = auto()
    """Different values, or units, are counted."""
    SAME = auto()
    """Nothing: the result is the same without it."""
    REFUSED = auto()
    """Whether a value counts would depend on other units' values."""


class Steady(Enum):
    """Whether the result over one unit's rows depends on the order in which rows are read."""

    ALWAYS = auto()
    """It never does."""
    OF_INTEGERS = auto()
    """Only through the rounding of doubles."""
    NEVER = auto()
    """It may, or nobody has shown that it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateNode:
    """A syntax node that calls the aggregate.

    ``name`` is its class and ``arguments`` are those that it may carry. The class ``Anonymous``
    holds calls of functions that the parser does not know; ``spellings`` are the names of those
    that are meant. ``output`` is the name of an output column that has no other. ``dialects`` are
    those in which the node means what it means in PostgreSQL.
    """

    name: str
    spellings: tuple[str, ...]
    arguments: tuple[str, ...]
    form: Form
    output: str
    dialects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why a call has no answer in some place, and what to write instead."""

    headline: str
    why: str
    instead: str


Lower = Callable[[Aggregated, Private], Lowered]
ResultShape = Callable[[tuple[Expression, ...], int | None], Shape]
"""The type and bounds of the result over at most so many rows of one unit (None: unknown)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateRecord:
    """An aggregate function.

    ``name`` is its name in plans and engines, ``about`` a line of the documentation. It takes from
    ``values[0]`` to ``values[1]`` arguments, each of one of ``kinds``. ``shape`` is the type and
    bounds of its result over the rows of one unit; over those of several units, type alone.

    Over private rows: ``lower`` makes statistics of it, ``needs`` says what must be known of the
    arguments, ``distinct`` what DISTINCT means, and ``strict_timing`` whether it is answered where
    statements must take as long whatever the rows hold. ``row_bounds`` and ``group_bounds``: it
    takes ``contribution_bounds_per_row``, ``_per_group``.

    Over one unit's rows: ``per_unit`` says why it is not answered (None: it is). ``steady`` says
    whether the order of rows may change it, ``chooses`` that it gives one of several equal values,
    whose representation must not be seen.

    ``windowed``: it may stand in a window. ``correlated``: it may stand in a correlated subquery,
    where it is NULL if no row matches. ``gives_values``: its result may be made of a value itself,
    so that of an identifier it is one. ``wider``: engines compute it in a wider type than planned.

    ``examples`` are calls over columns that the self-test makes: ``x`` (-1 to 3), ``y`` (0 to 2), the
    integer ``n`` (0 to 5), ``flag``, ``kind`` (a text from a public list), ``day`` and ``moment``.
    """

    name: str
    about: str
    nodes: tuple[AggregateNode, ...]
    values: tuple[int, int]
    kinds: frozenset[Kind]
    shape: ResultShape
    lower: Lower | Unanswered
    needs: Needs
    distinct: Distinct
    strict_timing: bool
    row_bounds: bool
    group_bounds: bool
    per_unit: Unanswered | None
    steady: Steady
    chooses: bool
    windowed: bool
    correlated: bool
    gives_values: bool
    wider: bool
    examples: tuple[str, ...]
