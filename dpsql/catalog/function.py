"""What a scalar function is: how it types, and what it does to domains. Engines say how they write it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpsql.catalog.decimals import decimal_name
from dpsql.ir.expressions import Expression, Literal, Shape
from dpsql.ir.lengths import Growth
from dpsql.policy.types import INSTANT, Kind

Shaper = Callable[[tuple[Expression, ...], str], Shape]


class Mismatch(Exception):
    """Arguments a function does not take; the text says what it takes instead."""


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function.

    ``shape`` raises ``Mismatch`` for arguments it does not take. ``about`` is a line of the
    documentation. ``growth`` bounds the length of a text or list that it gives; a function without
    one gives neither.
    """

    name: str
    shape: Shaper
    about: str
    growth: Growth | None = None


@dataclass(frozen=True, slots=True)
class FunctionNode:
    """A syntax node that calls the function, or that one of its operators is written as.

    ``name`` is its class, ``arguments`` are those that it may carry, and ``values`` those that are
    the arguments of the function, in order; None where ``sql.bind`` reads the node in its own way.
    ``dialects`` are those beside PostgreSQL in which it means the same.
    """

    name: str
    arguments: tuple[str, ...]
    values: tuple[str, ...] | None
    dialects: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRecord:
    """What is recorded of a scalar function. No field has a default: nothing is assumed.

    ``strict`` says that it is NULL wherever an argument is. ``examples`` are calls over the columns
    that the self-test makes (see ``record.AggregateRecord``). A function without nodes is what
    ``sql.bind`` makes of a node of another one.
    """

    function: Function
    nodes: tuple[FunctionNode, ...]
    strict: bool
    examples: tuple[str, ...]


def expect(args: tuple[Expression, ...], count: int | range, what: str) -> None:
    """Refuse another number of arguments."""
    allowed = range(count, count + 1) if isinstance(count, int) else count
    if len(args) not in allowed:
        raise Mismatch(f"{what} does not take {len(args)} arguments")


def expect_kind(argument: Expression, kinds: Sequence[Kind], what: str) -> None:
    """Refuse an argument of another type (NULL fits everywhere)."""
    kind = argument.shape.kind
    if kind is not Kind.NULL and kind not in kinds:
        names = " or ".join(k.value for k in kinds)
        raise Mismatch(f"{what} takes {names}, not {kind.value}")


def any_nullable(args: tuple[Expression, ...]) -> bool:
    """Strict functions are NULL when an argument is."""
    return any(a.shape.nullable for a in args)


def constant(argument: Expression, what: str) -> Literal:
    """The argument, which must be a constant."""
    if not isinstance(argument, Literal):
        raise Mismatch(f"{what} must be a literal")
    return argument


def name_of_type(kind: Kind, args: Sequence[Expression]) -> str:
    """The name of the type of what is made of others: an instant where one is, or what holds decimals."""
    if kind is Kind.DOUBLE:
        return decimal_name(args)
    instants = any(a.shape.type_name == INSTANT for a in args)
    return INSTANT if kind is Kind.TIMESTAMP and instants else ""


def common_kind(args: Sequence[Expression], what: str) -> Kind:
    """The one kind that holds all arguments."""
    kinds = {a.shape.kind for a in args} - {Kind.NULL}
    if Kind.INTERVAL in kinds:
        raise Mismatch(f"{what} does not take an interval")
    if not kinds:
        return Kind.NULL
    if len(kinds) == 1:
        return kinds.pop()
    if kinds == {Kind.INTEGER, Kind.DOUBLE}:
        return Kind.DOUBLE
    if kinds == {Kind.DATE, Kind.TIMESTAMP}:
        return Kind.TIMESTAMP
    names = " and ".join(sorted(k.value for k in kinds))
    raise Mismatch(f"{what} cannot mix {names}")
