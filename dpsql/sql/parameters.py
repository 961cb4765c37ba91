"""Values that a caller gives for parameters, as values of Python's own types.

A caller's class may say of itself what it likes: how it is printed, compared and hashed. So no
method of it is called: its value is read by the type that it is derived from.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final
from uuid import UUID


class Unknown:
    """In place of a value of a type that no constant has; binding refuses it."""

    def __repr__(self) -> str:
        """The same for every such value: nothing of the value is in it."""
        return "Unknown"


UNKNOWN: Final = Unknown()


STRANGE: Final = re.compile("[\x00\ud800-\udfff]")
"""Characters that no database stores: they would end or break a message."""
MOST_PARAMETERS = 10_000
"""Of one statement: each is read and bound by itself, between the statements of others."""


def builtin(value: object) -> Any:
    """The value of the exact type that it is derived from, or ``UNKNOWN``.

    >>> from enum import IntEnum
    >>> builtin(IntEnum("Size", "small large").large), builtin(b"x")
    (2, Unknown)
    """
    for kind, read in _READERS.items():
        if issubclass(type(value), kind):
            return read(value)
    return UNKNOWN


def builtins(values: Iterable[object]) -> tuple[Any, ...]:
    """The values of all parameters."""
    return tuple(map(builtin, values))


def text(value: str) -> str:
    """The characters that a text, or a value of a class derived from it, is made of."""
    return str.__str__(value)


def _fraction(value: Fraction) -> Any:
    """Its two numbers; a class derived from it may hide them."""
    if type(value) is not Fraction:
        return UNKNOWN
    return Fraction(int.__int__(value.numerator), int.__int__(value.denominator))


def _moment(value: dt.datetime) -> Any:
    """With a zone it is the same instant in UTC; the zone alone is asked how far it is ahead."""
    if type(value) is not dt.datetime and value != value:  # as pandas spells none
        return UNKNOWN
    # Those of pandas have nanoseconds, and engines none.
    plain = dt.datetime.combine(dt.datetime.date(value), dt.datetime.time(value))
    ahead = dt.datetime.utcoffset(value)
    try:
        return plain if ahead is None else (plain - ahead).replace(tzinfo=dt.UTC)
    except OverflowError:
        return UNKNOWN


def _members(values: Iterator[object], count: int) -> Any:
    """The values of a list, of which none is a list."""
    members = () if count > MOST_PARAMETERS else tuple(values)
    if count > len(members) or any(issubclass(type(m), list | tuple) for m in members):
        return UNKNOWN
    return tuple(map(builtin, members))


_READERS: dict[type, Callable[[Any], Any]] = {
    type(None): lambda _: None,
    bool: bool,
    int: int.__int__,
    float: float.__float__,
    Decimal: Decimal,
    Fraction: _fraction,
    str: text,
    dt.datetime: _moment,
    UUID: lambda value: str(UUID(int=int.__int__(UUID.__dict__["int"].__get__(value)))),
    dt.date: lambda value: dt.date.fromordinal(dt.date.toordinal(value)),
    list: lambda value: _members(list.__iter__(value), list.__len__(value)),
    tuple: lambda value: _members(tuple.__iter__(value), tuple.__len__(value)),
}
"""The first that a value's class is, or is derived from, reads it."""

__all__ = ["STRANGE", "UNKNOWN", "Unknown", "builtin", "builtins", "text"]
