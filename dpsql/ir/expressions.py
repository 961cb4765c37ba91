"""Scalar expressions of dpsql's own relational form. All values are frozen and typed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from typing import Literal as Literal_

from dpsql.diagnostics.span import Span
from dpsql.effort import step
from dpsql.ir.domain import ANYTHING, Domain, interval
from dpsql.ir.privacy_clause import Bounds
from dpsql.policy.types import Kind, Scalar

if TYPE_CHECKING:
    from dpsql.ir.relations import Relation


@dataclass(frozen=True, slots=True)
class Shape:
    """Type, nullability and publicly known domain of an expression.

    ``type_name`` is the name of a column's own type if it says more than the kind. Of computed
    values, only decimals and instants have one.
    """

    kind: Kind
    nullable: bool = True
    domain: Domain = ANYTHING
    type_name: str = ""

    def optional(self) -> Shape:
        """The same, but possibly NULL."""
        return replace(self, nullable=True)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the relation below, by its statement-wide number."""

    number: int
    name: str
    shape: Shape = field(compare=False)
    span: Span | None = field(default=None, compare=False)
    identifier: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. ``value`` None is SQL's NULL."""

    value: Scalar | None
    shape: Shape
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Interval:
    """A constant span of time, as ``count`` times ``unit``."""

    count: int
    unit: str
    shape: Shape = Shape(Kind.INTERVAL, nullable=False)
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the registry; ``option`` is its constant word (a date part, a pattern)."""

    function: str
    args: tuple[Expression, ...]
    shape: Shape = field(compare=False)
    option: str = ""
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Case:
    """CASE WHEN. ``otherwise`` is always set; it is NULL if the analyst wrote no ELSE."""

    whens: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    shape: Shape = field(compare=False)
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SortKey:
    """One item of an ORDER BY."""

    value: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class FrameEnd:
    """The place where a frame begins or ends: the current row, or a place before or after it.

    ``distance`` is its distance from the row. Without one it is the end of the partition.
    """

    side: Literal_["preceding", "current row", "following"]
    distance: int | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows around the current row that a window function reads.

    Distances count rows, values of the sort key, or groups of rows that are sorted as equal.
    """

    unit: Literal_["rows", "range", "groups"]
    start: FrameEnd
    end: FrameEnd


@dataclass(frozen=True, slots=True)
class Window:
    """A window function over ``partition`` in ``order``. Without a ``frame`` it has SQL's default.

    ``ties`` are columns that order the rows which are equal in ``order``: see ``ir.window_ties``.
    """

    function: str
    args: tuple[Expression, ...]
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    frame: Frame | None
    shape: Shape = field(compare=False)
    distinct: bool = False
    where: Expression | None = None
    span: Span | None = field(default=None, compare=False)
    ties: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class Subquery:
    """A query inside an expression: ``in`` (with a value), ``exists``, or ``scalar``.

    ``column`` is the query's only output (None for exists). ``text`` is the text as it was written.
    It identifies the query: within one SELECT, equal texts mean the same query.
    """

    form: Literal_["in", "exists", "scalar"]
    value: Expression | None
    text: str
    relation: Relation = field(compare=False)
    column: Column | None = field(compare=False)
    shape: Shape = field(compare=False)
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value, or a list of values, that is public by the time the statement runs.

    Below the frontier it takes the place of a subquery whose result was released before.
    """

    name: str
    shape: Shape
    many: bool = False
    span: Span | None = field(default=None, compare=False)


Expression = Column | Literal | Interval | Call | Case | Window | Subquery | Parameter


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate call of the analyst, which is a part of an Aggregate relation only.

    ``option`` holds its constants (a quantile's fraction), ``where`` its FILTER, and ``bounds`` the
    clamping bounds of its named arguments. ``averaged`` says that it is the mean of the units'
    means.
    """

    function: str
    args: tuple[Expression, ...]
    shape: Shape = field(compare=False)
    distinct: bool = False
    where: Expression | None = None
    option: str = ""
    bounds: Bounds | None = None
    averaged: bool = False
    span: Span | None = field(default=None, compare=False)


def conjuncts(condition: Expression) -> list[Expression]:
    """The parts of a condition, all of which must hold."""
    if isinstance(condition, Call) and condition.function == "and":
        return [part for arg in condition.args for part in conjuncts(arg)]
    return [condition]


NULL = Literal(None, Shape(Kind.NULL))


def integer(value: int) -> Literal:
    """A whole constant."""
    return Literal(value, Shape(Kind.INTEGER, False, interval(value, value, integral=True)))


def child_expressions(node: Expression) -> tuple[Expression, ...]:
    """The expressions directly below."""
    match node:
        case Column() | Literal() | Interval() | Parameter():
            return ()
        case Subquery(value=value):
            return () if value is None else (value,)
        case Call(args=args):
            return args
        case Case(whens=whens, otherwise=otherwise):
            return (*(part for when in whens for part in when), otherwise)
        case Window(args=args, partition=partition, order=order, where=where):
            last = () if where is None else (where,)
            return (*args, *partition, *(key.value for key in order), *last)


def walk(node: Expression) -> Iterator[Expression]:
    """The node and all nodes below it, in the order in which they are written."""
    due = [node]
    while due:
        step()
        found = due.pop()
        yield found
        due.extend(reversed(child_expressions(found)))


def columns(*nodes: Expression) -> Iterator[Column]:
    """Every column reference in the expressions."""
    for node in nodes:
        for part in walk(node):
            if isinstance(part, Column):
                yield part


def substitute(node: Expression, swap: Callable[[Expression], Expression | None]) -> Expression:
    """A copy in which ``swap``, where it returns a node, replaces the node, from the top down."""
    step()
    new = swap(node)
    if new is not None:
        return new
    match node:
        case Column() | Literal() | Interval() | Parameter():
            return node
        case Subquery(value=value):
            return replace(node, value=None if value is None else substitute(value, swap))
        case Call(args=args):
            return replace(node, args=tuple(substitute(a, swap) for a in args))
        case Case(whens=whens, otherwise=otherwise):
            return replace(
                node,
                whens=tuple((substitute(c, swap), substitute(v, swap)) for c, v in whens),
                otherwise=substitute(otherwise, swap),
            )
        case Window(args=args, partition=partition, order=order, where=where):
            return replace(
                node,
                args=tuple(substitute(a, swap) for a in args),
                partition=tuple(substitute(p, swap) for p in partition),
                order=tuple(replace(k, value=substitute(k.value, swap)) for k in order),
                where=None if where is None else substitute(where, swap),
            )


def alias(column: Column) -> str:
    """The generated name of a column: readable, unique in the statement, never a keyword.

    >>> alias(Column(7, "Total (EUR)", Shape(Kind.DOUBLE)))
    'total_eur_7'
    """
    words = re.sub(r"[^a-z0-9]+", "_", column.name.lower()).strip("_")[:24]
    return f"{words}_{column.number}" if words[:1].isalpha() else f"c_{column.number}"
