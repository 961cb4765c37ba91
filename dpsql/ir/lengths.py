"""Bounds on the lengths of texts and lists, known before any of them is computed.

An engine holds the results of an expression for 2,048 rows at once, outside of its limit on memory,
and cannot be interrupted meanwhile. So the statement alone must bound the length of each text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dpsql.ir.expressions import Expression


@dataclass(frozen=True, slots=True)
class Length:
    """A bound: ``stored`` times the length of the longest stored text, and ``fixed`` characters."""

    stored: int = 0
    fixed: int = 0

    def __add__(self, other: Length) -> Length:
        """The bound of one text followed by the other."""
        return Length(self.stored + other.stored, self.fixed + other.fixed)

    def up_to(self, most: int) -> Length:
        """The bound of the text cut after ``most`` characters."""
        return Length(0, most) if self.stored or self.fixed > most else self


NOTHING, STORED = Length(), Length(1)
VALUE = Length(0, 40)
"""The bound of a number, a date or a time as text, and of an item of a list."""
Growth = Callable[[Sequence[Length], tuple[Expression, ...], str], Length]
"""Computes the length of a function's result from those of its arguments; ``str`` is its option."""


def either(lengths: Iterable[Length]) -> Length:
    """The bound of one of several texts."""
    found = tuple(lengths)
    return Length(
        max((n.stored for n in found), default=0), max((n.fixed for n in found), default=0)
    )


def together(lengths: Iterable[Length]) -> Length:
    """The bound of all texts, one after the other."""
    return sum(lengths, NOTHING)


def as_first(lengths: Sequence[Length], _: tuple[Expression, ...], __: str) -> Length:
    """The result is no longer than the first argument."""
    return lengths[0]


def as_any(lengths: Sequence[Length], _: tuple[Expression, ...], __: str) -> Length:
    """The result is one of the arguments."""
    return either(lengths)


def as_all(lengths: Sequence[Length], _: tuple[Expression, ...], __: str) -> Length:
    """The result is all arguments together; those that are no texts are converted to text."""
    return together(n if n != NOTHING else VALUE for n in lengths)
