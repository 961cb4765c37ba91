"""The record of an aggregate: its syntax, its type, and how it is answered.

No field has a default. A missing field is a TypeError when the record is made, never an assumption.

A syntax node is given by the name of the parser's class for it, and ``sql.nodes`` looks up the
class. So the parser's classes do not leave ``dpsql.sql``, and an unknown name stops the import.
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
"""Kinds with an order on which a distance, and so an error, is defined."""
LISTED = RANKED | {Kind.TEXT, Kind.BOOLEAN}
"""The kinds of ``RANKED``, and kinds whose values a policy can list."""

EVERY_DIALECT = ("duckdb", "bigquery", "snowflake")
"""Input dialects beside PostgreSQL."""


class Form(Enum):
    """How the arguments of a call are read."""

    VALUES = auto()
    """``SUM(x)``, ``CORR(x, y)``: the arguments are the aggregated values."""
    CONDITION = auto()
    """``COUNT_IF(c)``: the argument is a condition on rows, as in FILTER."""
    DIFFERENT = auto()
    """``APPROX_COUNT_DISTINCT(x)``: different values are aggregated, as with DISTINCT."""
    RANK = auto()
    """``MEDIAN(x)``, ``QUANTILE(x, f)``: a value, and the fraction of the quantile."""
    RANKS = auto()
    """``APPROX_QUANTILES(x, n)``: a value, and the number of quantiles in a list."""


class Needs(Enum):
    """What must be publicly known of each argument over private rows, to scale the noise."""

    NOTHING = auto()
    BOUNDS = auto()
    """Two finite numbers that bound the value."""
    POSITIVE_BOUNDS = auto()
    """Two finite numbers above 0 that bound the value."""
    RANGE_OR_LIST = auto()
    """Two ends that bound the value; for kinds without an order, a list of its values."""
    LIST = auto()
    """A list of its values."""


class Distinct(Enum):
    """The meaning of DISTINCT over private rows."""

    COUNTS = auto()
    """DISTINCT counts different values, or units."""
    SAME = auto()
    """DISTINCT does not change the result."""
    REFUSED = auto()
    """DISTINCT is refused: whether a value counts would depend on the values of other units."""


class Steady(Enum):
    """Whether the result over one unit's rows depends on the order in which rows are read."""

    ALWAYS = auto()
    """It does not depend on the order."""
    OF_INTEGERS = auto()
    """It depends on the order only through the rounding of doubles."""
    NEVER = auto()
    """It may depend on the order, or the contrary is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateNode:
    """A syntax node of the parser for a call of the aggregate.

    ``name`` is the class of the node, and ``arguments`` are the node's arguments that may be set.
    The class ``Anonymous`` is for functions that the parser does not know; ``spellings`` are then
    the names of the functions that call this aggregate. ``output`` is the name of the output column
    if the query gives none. ``dialects`` are those in which the node has the same meaning as in
    PostgreSQL.
    """

    name: str
    spellings: tuple[str, ...]
    arguments: tuple[str, ...]
    form: Form
    output: str
    dialects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The refusal of a call: why it is not answered in some place, and what to write instead."""

    headline: str
    why: str
    instead: str


Lower = Callable[[Aggregated, Private], Lowered]
ResultShape = Callable[[tuple[Expression, ...], int | None], Shape]
"""Gives the type and bounds of the result over the rows of one unit.

The number is the most rows that a unit has (None: unknown).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateRecord:
    """An aggregate function.

    ``name`` is its name in plans and engines, ``about`` a line of the documentation. It takes from
    ``values[0]`` to ``values[1]`` arguments, each of one of ``kinds``. ``shape`` gives the type and
    bounds of its result over the rows of one unit; over rows of several units, only the type.

    Over private rows: ``lower`` translates a call into statistics. ``needs`` says what must be
    known of the arguments, and ``distinct`` what DISTINCT means. ``strict_timing`` says whether the
    aggregate is answered where the duration of statements must not depend on the rows.
    ``row_bounds`` and ``group_bounds`` say whether it takes ``contribution_bounds_per_row`` and
    ``_per_group``.

    Over one unit's rows: ``per_unit`` says why it is not answered (None: it is answered).
    ``steady`` says whether the order of rows may change the result. ``chooses`` says that the
    result is one of several equal values, whose representation must not be seen.

    ``windowed``: it may be used as a window function. ``correlated``: it may be used in a
    correlated subquery, where it is NULL if no row matches. ``gives_values``: the result may
    contain a value itself, so over an identifier the result may be an identifier. ``wider``:
    engines compute it in a wider type than planned.

    ``examples`` are calls over columns that the self-test makes: ``x`` (-1 to 3), ``y`` (0 to 2),
    the integer ``n`` (0 to 5), ``flag``, ``kind`` (a text from a public list), ``day`` and
    ``moment``.
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
