"""Statements that dpsql makes for an engine, as values: from the rows of a measurement to its sums.

At the bottom is a relation of the query (``ir.relations``), which ``Read`` reads. Every node above
it is defined here: a SELECT with its clauses, a join, a union. Columns have names, since dpsql
chooses all of them. No node holds text of an engine; an engine's writer makes the text.

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
"""The parameter with a random number, drawn for each run, that the choice of groups depends on."""


@dataclass(frozen=True, slots=True)
class Name:
    """A column of a source of a SELECT. ``of`` names the source if two have such a column."""

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
    """An expression of the query over the rows of a relation, used in ``Read`` only."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class KeyValue:
    """An expression of the query as a key. Equal values have the same bytes."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Steps:
    """A value clamped to ``low .. high`` in whole steps of ``2**-shift``, less ``centre``.

    NULL stays NULL, and NaN is above all numbers. ``least`` and ``most`` are the ends in steps. If
    values are ``whole``, each integer is one step and is not converted. ``inside`` says that no
    value is beyond the ends, and ``doubles`` that steps stay doubles.
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
    """The number of the bin that holds a value, from zero; NULL for NULL.

    If ``members`` are listed, each is a bin, and other values are in none. Otherwise bins have a
    ``width`` and are counted from ``origin``, in whole numbers, days or microseconds, or on
    doubles. A value beyond ``low .. high`` is in the first or the last of ``count`` bins, or in
    none if the range is ``closed``.
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
    """An operator or a function on numbers and truth values, by its name."""

    name: Operator
    args: tuple[Term, ...]


Operator = Literal[
    "+", "-", "*", "//", "/", "%", "<<", "&", "=", "<>", ">", ">=", "<=", "and", "or", "is null",
    "is not null", "negative", "abs", "least", "greatest", "floor", "sqrt", "nullif", "coalesce",
    "bit_count", "signbit", "row",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cast:
    """A number as an integer of 32, 64 or 128 bits, or as a double. Its bounds make it fit."""

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

    ``count`` without a value counts rows. Sums of whole numbers have 128 bits, and are NULL if
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
    """The rank of a row in a total order of its partition, from one; ``dense``: of a group."""

    partition: tuple[Term, ...]
    order: tuple[Term, ...]
    dense: bool = False


@dataclass(frozen=True, slots=True)
class Draw:
    """A pseudorandom number of a salt and these values: a hash of their injective encoding.

    The salt is that of the run, unless a constant salt is given.
    """

    values: tuple[Term, ...]
    salt: int | None = None


@dataclass(frozen=True, slots=True)
class DrawPart:
    """The part of a draw among ``2**bits`` equal parts of all numbers: the draw's first bits."""

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
    """Every public group, in key order, with the ``numbers`` of its row in ``sums``, or zeros."""

    groups: PublicGroups
    sums: Query
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A query that a statement reads in several places, written once under a name.

    If it is ``stored``, the engine computes its rows once and keeps them.
    """

    name: str
    query: Query
    stored: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT. ``group`` has names of ``items``; ``limit`` is the most rows that it returns."""

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
    """A query under the alias by which its columns are referred to."""

    query: Query
    alias: str


@dataclass(frozen=True, slots=True)
class JoinUsing:
    """Rows of two sources that are equal in the columns ``using``. NULL is equal to nothing."""

    kind: Literal["inner", "left", "semi", "anti"]
    left: From
    right: Alias
    using: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JoinKeys:
    """Each row of ``left`` with the row of ``right`` with equal keys, if any. NULL equals NULL.

    Keys are columns of the source with the alias ``of``.
    """

    left: From
    right: Alias
    of: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JoinPath:
    """Rows joined with the parents on the path to their unit, one foreign key after the other.

    ``columns`` are the columns of ``rows`` that hold the first key. Parents have the aliases
    ``o0``, ``o1`` and so on.
    """

    rows: Alias
    columns: tuple[str, ...]
    path: tuple[ForeignKey, ...]


Query = Read | PublicGroups | EveryGroup | CommonTable | Select | UnionAll
From = Alias | JoinUsing | JoinKeys | JoinPath


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows for an engine to store as a table of its own.

    ``columns`` are those of the query, each with its name in the table. The table is sorted by the
    columns of the query that ``order`` names.
    """

    query: Query
    columns: tuple[tuple[str, str], ...]
    order: tuple[str, ...] = ()
