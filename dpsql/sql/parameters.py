"""Values of parameters, converted to values of Python's built-in types.

A class of the caller may define how its values are printed, compared and hashed. So no method of
that class is called. A value is read by the methods of the built-in type that the class is derived
from.
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
    """Stands for a value whose type no constant has; binding refuses it."""

    def __repr__(self) -> str:
        """The same text for every such value, with nothing of the value."""
        return "Unknown"


UNKNOWN: Final = Unknown()


STRANGE: Final = re.compile("[\x00\ud800-\udfff]")
"""Characters that no database stores: NUL would end a message, and surrogates would break it."""
MOST_PARAMETERS = 10_000
"""The most parameters of one statement: each costs time in which other statements wait."""


def builtin(value: object) -> Any:
    """The value as one of the built-in type that its class is derived from, or ``UNKNOWN``.

    >>> from enum import IntEnum
    >>> builtin(IntEnum("Size", "small large").large), builtin(b"x")
    (2, Unknown)
    """
    for kind, read in _READERS.items():
        if issubclass(type(value), kind):
            return read(value)
    return UNKNOWN


def builtins(values: Iterable[object]) -> tuple[Any, ...]:
    """The values of all parameters, each converted by ``builtin``."""
    return tuple(map(builtin, values))


def text(value: str) -> str:
    """A text, or a value of a class derived from ``str``, as a plain ``str``."""
    return str.__str__(value)


def _fraction(value: Fraction) -> Any:
    """A fraction; a class derived from ``Fraction`` is not read, as it may hide the two numbers."""
    if type(value) is not Fraction:
        return UNKNOWN
    return Fraction(int.__int__(value.numerator), int.__int__(value.denominator))


def _moment(value: dt.datetime) -> Any:
    """A moment; with a zone, the same instant in UTC. Only the zone's offset is asked for."""
    if type(value) is not dt.datetime and value != value:  # pandas' NaT
        return UNKNOWN
    # pandas' timestamps have nanoseconds, which engines do not have.
    plain = dt.datetime.combine(dt.datetime.date(value), dt.datetime.time(value))
    ahead = dt.datetime.utcoffset(value)
    try:
        return plain if ahead is None else (plain - ahead).replace(tzinfo=dt.UTC)
    except OverflowError:
        return UNKNOWN


def _members(values: Iterator[object], count: int) -> Any:
    """The values of a list; ``UNKNOWN`` if there are too many, or one of them is a list."""
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
"""The readers of values, by type. The first type that a value's class is derived from is used."""

__all__ = ["STRANGE", "UNKNOWN", "Unknown", "builtin", "builtins", "text"]
