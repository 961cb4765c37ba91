"""What a scalar function is: how it types, what it does to domains, and its total SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpsql.policy.types import Kind
from dpsql.sql.expressions import Expression, Literal, Shape

Shaper = Callable[[tuple[Expression, ...], str], Shape]
Writer = Callable[[Sequence[str], tuple[Expression, ...], str], str]


class Mismatch(Exception):
    """Arguments a function does not take; the text says what it takes instead."""


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function.

    ``shape`` raises ``Mismatch`` for arguments it does not take. ``write`` gives SQL that never
    fails, whatever the rows hold: a failure would tell the analyst about them. ``example`` is an
    expression over the demo tables, used by the documentation and the oracle.
    """

    name: str
    shape: Shaper
    write: Writer
    about: str


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


def common_kind(args: Sequence[Expression], what: str) -> Kind:
    """The one kind that holds all arguments."""
    kinds = {a.shape.kind for a in args} - {Kind.NULL}
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
