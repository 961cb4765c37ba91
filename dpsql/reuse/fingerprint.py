"""A digest of a plan's values, the same in every process: equal values have equal digests."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from dpsql.effort import step


def fingerprint(*values: object) -> str:
    """A digest of values made of dataclasses (their compared fields), collections and constants.

    >>> fingerprint({"a": 1, "b": frozenset({2, 3})}) == fingerprint({"b": frozenset({3, 2}), "a": 1})
    True
    >>> fingerprint((1, 2)) == fingerprint((1, (2,)))
    False
    """
    return hashlib.sha256("\0".join(_words(values)).encode()).hexdigest()


def _words(value: object) -> Iterator[str]:
    """The parts of a value as texts; each collection begins with its number of parts."""
    step()
    if is_dataclass(value) and not isinstance(value, type):
        shown = [f for f in fields(value) if f.compare]
        yield f"{type(value).__name__} {len(shown)}"
        for shown_field in shown:
            yield from _words(getattr(value, shown_field.name))
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}"
        for key in sorted(value, key=repr):
            yield from _words((key, value[key]))
    elif isinstance(value, frozenset):
        yield f"set {len(value)}"
        for part in sorted(value, key=repr):
            yield from _words(part)
    elif isinstance(value, tuple | list):
        yield f"list {len(value)}"
        for part in value:
            yield from _words(part)
    elif isinstance(value, enum.Enum):
        yield f"{type(value).__name__}.{value.name}"
    else:
        yield f"{type(value).__name__} {value!r}"
