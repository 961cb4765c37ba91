"""Scalar functions: their result types, and their effect on domains.

How a function is written in an engine's SQL is part of that engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpsql.catalog.decimals import decimal_name
from dpsql.ir.expressions import Expression, Literal, Shape
from dpsql.ir.lengths import Growth
from dpsql.policy.types import INSTANT, Kind

Shaper = Callable[[tuple[Expression, ...], str], Shape]


class Mismatch(Exception):
    """The arguments do not fit the function; the text says which arguments it takes."""


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function.

    ``shape`` gives the shape of the result, and raises ``Mismatch`` for arguments that the function
    does not take. ``about`` is a line of the documentation. ``growth`` bounds the length of a text
    or list that the function returns. A function without ``growth`` returns neither.
    """

    name: str
    shape: Shaper
    about: str
    growth: Growth | None = None


@dataclass(frozen=True, slots=True)
class FunctionNode:
    """A syntax node of the parser for a call of the function or for one of its operators.

    ``name`` is the class of the node. ``arguments`` are the node's arguments that may be set.
    ``values`` are those that become the arguments of the function, in order; None where
    ``sql.bind`` has a handler of its own for the node. ``dialects`` are the dialects beside
    PostgreSQL in which the node has the same meaning.
    """

    name: str
    arguments: tuple[str, ...]
    values: tuple[str, ...] | None
    dialects: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRecord:
    """The record of a scalar function. No field has a default: nothing is assumed.

    ``strict`` says that the result is NULL wherever an argument is. ``examples`` are calls over the
    columns that the self-test makes (see ``record.AggregateRecord``). A function without nodes is
    called only by ``sql.bind``, when it binds a node of another function.
    """

    function: Function
    nodes: tuple[FunctionNode, ...]
    strict: bool
    examples: tuple[str, ...]


def expect(args: tuple[Expression, ...], count: int | range, what: str) -> None:
    """Raise ``Mismatch`` if the number of arguments is not ``count``."""
    allowed = range(count, count + 1) if isinstance(count, int) else count
    if len(args) not in allowed:
        raise Mismatch(f"{what} does not take {len(args)} arguments")


def expect_kind(argument: Expression, kinds: Sequence[Kind], what: str) -> None:
    """Raise ``Mismatch`` if the argument is of another kind (NULL fits everywhere)."""
    kind = argument.shape.kind
    if kind is not Kind.NULL and kind not in kinds:
        names = " or ".join(k.value for k in kinds)
        raise Mismatch(f"{what} takes {names}, not {kind.value}")


def any_nullable(args: tuple[Expression, ...]) -> bool:
    """Whether an argument may be NULL: then so may the result of a strict function."""
    return any(a.shape.nullable for a in args)


def constant(argument: Expression, what: str) -> Literal:
    """The argument, which must be a constant."""
    if not isinstance(argument, Literal):
        raise Mismatch(f"{what} must be a literal")
    return argument


def name_of_type(kind: Kind, args: Sequence[Expression]) -> str:
    """The type name of a result that is computed from the arguments.

    It is that of an instant if an argument is one, or of a decimal that holds all decimals.
    """
    if kind is Kind.DOUBLE:
        return decimal_name(args)
    instants = any(a.shape.type_name == INSTANT for a in args)
    return INSTANT if kind is Kind.TIMESTAMP and instants else ""


def common_kind(args: Sequence[Expression], what: str) -> Kind:
    """The kind that holds all arguments; raises ``Mismatch`` if there is none."""
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
