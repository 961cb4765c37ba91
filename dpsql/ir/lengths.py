"""How long texts and lists may get, before any of them is made.

An engine holds what an expression gives for 2,048 rows at once, outside of its limit on memory, and
cannot be interrupted meanwhile. So the length of each text is bounded by the statement alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dpsql.ir.expressions import Expression


@dataclass(frozen=True, slots=True)
class Length:
    """No more than ``stored`` times the longest text that is stored, and ``fixed`` characters."""

    stored: int = 0
    fixed: int = 0

    def __add__(self, other: Length) -> Length:
        """One behind the other."""
        return Length(self.stored + other.stored, self.fixed + other.fixed)

    def up_to(self, most: int) -> Length:
        """Cut after so many characters."""
        return Length(0, most) if self.stored or self.fixed > most else self


NOTHING, STORED = Length(), Length(1)
VALUE = Length(0, 40)
"""A number, a date or a time as text, and an item of a list."""
Growth = Callable[[Sequence[Length], tuple[Expression, ...], str], Length]
"""The length of what a function gives, from those of its arguments; ``str`` is its option."""


def either(lengths: Iterable[Length]) -> Length:
    """One of several."""
    found = tuple(lengths)
    return Length(
        max((n.stored for n in found), default=0), max((n.fixed for n in found), default=0)
    )


def together(lengths: Iterable[Length]) -> Length:
    """All of them, one behind the other."""
    return sum(lengths, NOTHING)


def as_first(lengths: Sequence[Length], _: tuple[Expression, ...], __: str) -> Length:
    """No longer than the first argument."""
    return lengths[0]


def as_any(lengths: Sequence[Length], _: tuple[Expression, ...], __: str) -> Length:
    """One of the arguments."""
    return either(lengths)


def as_all(lengths: Sequence[Length], _: tuple[Expression, ...], __: str) -> Length:
    """All of the arguments, those that are no texts written as such."""
    return together(n if n != NOTHING else VALUE for n in lengths)
