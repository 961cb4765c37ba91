"""Statements that dpsql makes for an engine, as values: from the rows of a measurement to its sums.

Below stands a relation of the query (``ir.relations``), which ``Read`` reads. Above it every node is
one of those here: a SELECT with its clauses, a join, a union. Columns have names, since dpsql gives
all of them. No node holds text of an engine; an engine's writer makes it.

Terms are whole numbers unless they say otherwise. A statement bounds each of them, so that nothing
overflows: products fit into 64 bits, sums of rows into 128.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpsql.ir.expressions import Expression
from dpsql.ir.public_groups import PublicGroups
from dpsql.ir.relations import Relation
from dpsql.policy.model import ForeignKey
from dpsql.policy.types import Kind, Scalar

SALT = "salt"
"""A parameter: a random number drawn for each run, on which the choice of a unit's groups depends."""


@dataclass(frozen=True, slots=True)
class Name:
    """A column of what a SELECT reads, of the source ``of`` where two have the name."""

    name: str
    of: str = ""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of a stored table that is read under the alias ``of``, as it is stored."""

    name: str
    of: str


@dataclass(frozen=True, slots=True)
class Number:
    """A whole constant."""

    value: int


@dataclass(frozen=True, slots=True)
class RowValue:
    """An expression of the query over the rows of a relation; it stands in ``Read`` alone."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class KeyValue:
    """An expression of the query as a key: equal values are the same bytes."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Steps:
    """A value clamped to ``low .. high`` in whole steps of ``2**-shift``, less ``centre``.

    NULL stays NULL, NaN is above all numbers. ``least`` and ``most`` are the ends in steps. ``whole``
    values are integers of which each is a step: they are not converted. ``inside`` says that no value
    is beyond the ends, ``doubles`` that steps stay doubles.
    """

    value: Expression
    low: Fraction
    high: Fraction
    shift: int
    least: int
    most: int
    centre: int
    whole: bool = False
    inside: bool = False
    doubles: bool = False


@dataclass(frozen=True, slots=True)
class Bin:
    """The number of the bin that a value is in, from zero; NULL for NULL.

    Listed ``members`` are a bin each, and other values in none. Else bins have a ``width``, counted from
    ``origin``: in whole numbers, days or microseconds, or on doubles. What is beyond ``low .. high`` is in the
    first or the last of ``count`` bins, or in none if that is ``closed``.
    """

    value: Expression
    kind: Kind
    low: Scalar | None
    high: Scalar | None
    origin: Fraction
    width: Fraction
    count: int
    members: tuple[Scalar, ...] | None = None
    closed: bool = False
    wide: bool = False


@dataclass(frozen=True, slots=True)
class BinList:
    """The bins of a group, each with its weight, as one list in no particular order."""

    bin: Term
    weight: Term


@dataclass(frozen=True, slots=True)
class Op:
    """An operator or function of numbers and truth values, by its name."""

    name: Operator
    args: tuple[Term, ...]


Operator = Literal[
    "+", "-", "*", "//", "/", "%", "<<", "&", "=", "<>", ">", ">=", "<=", "and", "or", "is null",
    "is not null", "negative", "abs", "least", "greatest", "floor", "sqrt", "nullif", "coalesce",
    "bit_count", "signbit", "row",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cast:
    """A number as 32 bits, as 64, as 128, or as a double. It fits: the statement bounds it."""

    value: Term
    to: Literal["integer", "bigint", "hugeint", "double"]


@dataclass(frozen=True, slots=True)
class CaseWhen:
    """CASE: the first value whose condition holds, else ``otherwise`` (None is NULL)."""

    whens: tuple[tuple[Term, Term], ...]
    otherwise: Term | None = None


@dataclass(frozen=True, slots=True)
class Fold:
    """An aggregate over the rows of a group where ``where`` holds.

    ``count`` without a value counts rows; sums of whole numbers have 128 bits, and are NULL where
    there is nothing to add.
    """

    function: Literal["count", "sum", "min", "max", "bit_or"]
    value: Term | None = None
    where: Term | None = None
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Over:
    """An aggregate over all rows with the same ``partition``."""

    fold: Fold
    partition: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Rank:
    """The place of a row in a total order of its partition, from one; of groups: ``dense``."""

    partition: tuple[Term, ...]
    order: tuple[Term, ...]
    dense: bool = False


@dataclass(frozen=True, slots=True)
class Draw:
    """A number that a salt and these values decide: a hash of their injective encoding.

    The salt is that of the run, unless a constant one is given.
    """

    values: tuple[Term, ...]
    salt: int | None = None


@dataclass(frozen=True, slots=True)
class DrawPart:
    """Which of ``2**bits`` equal parts of all numbers a draw is in: its first bits."""

    draw: Draw
    bits: int


@dataclass(frozen=True, slots=True)
class RowDigest:
    """64 bits of the MD5 of the text of a row with these values."""

    values: tuple[Term, ...]


Term = (
    Name | StoredColumn | Number | RowValue | KeyValue | Steps | Op | Cast | CaseWhen | Fold | Over | Rank
    | Draw | DrawPart | RowDigest | Bin | BinList
)  # fmt: skip
Items = tuple[tuple[str, Term], ...]
"""The columns of a SELECT, by their names."""


@dataclass(frozen=True, slots=True)
class Read:
    """The rows of a relation of the query, with columns computed from each."""

    relation: Relation
    items: Items


@dataclass(frozen=True, slots=True)
class EveryGroup:
    """Every public group with the ``numbers`` of its row in ``sums``, or zeros; in the order of the keys."""

    groups: PublicGroups
    sums: Query
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A query that a statement reads in several places, written once under a name.

    Where it is ``stored``, the engine computes its rows once and keeps them.
    """

    name: str
    query: Query
    stored: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT. ``group`` are names of ``items``; ``limit`` is the most rows that it gives."""

    source: From
    items: Items
    where: tuple[Term, ...] = ()
    group: tuple[str, ...] = ()
    having: Term | None = None
    distinct: bool = False
    order: tuple[Term, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class UnionAll:
    """All rows of several queries with the same columns."""

    queries: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class Alias:
    """A query under the alias by which its columns are named."""

    query: Query
    alias: str


@dataclass(frozen=True, slots=True)
class JoinUsing:
    """Rows of two sources that agree in the columns ``using``: NULL is equal to nothing."""

    kind: Literal["inner", "left", "semi", "anti"]
    left: From
    right: Alias
    using: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JoinKeys:
    """Each row of ``left`` with the row of ``right``, if any, that has the same keys, NULLs too.

    Keys are columns of the source with the alias ``of``.
    """

    left: From
    right: Alias
    of: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JoinPath:
    """Rows with the parents that know their unit, one foreign key after the other.

    ``columns`` are those of ``rows`` that hold the first key. Parents have the aliases ``o0``, ``o1``..
    """

    rows: Alias
    columns: tuple[str, ...]
    path: tuple[ForeignKey, ...]


Query = Read | PublicGroups | EveryGroup | CommonTable | Select | UnionAll
From = Alias | JoinUsing | JoinKeys | JoinPath


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows for an engine to store as a table of its own.

    ``columns`` are those of the query, each with its name in the table. The table is stored in the
    ``order`` of columns of the query.
    """

    query: Query
    columns: tuple[tuple[str, str], ...]
    order: tuple[str, ...] = ()
