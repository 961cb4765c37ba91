"""The aggregates that dpsql answers: every record of every module of this folder.

A module is found because it is here. What no record describes is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules

from dpsql.catalog.record import AggregateRecord, Unanswered


def _records() -> Iterator[AggregateRecord]:
    for module in sorted(iter_modules(__path__), key=lambda found: found.name):
        yield from import_module(f"{__name__}.{module.name}").RECORDS


def _by_name() -> dict[str, AggregateRecord]:
    found: dict[str, AggregateRecord] = {}
    for record in _records():
        if record.name in found:
            raise TypeError(f"two records describe {record.name}")
        found[record.name] = record
    return found


AGGREGATES = _by_name()
"""By their name in plans."""


def names_where(keeps: Callable[[AggregateRecord], bool]) -> tuple[str, ...]:
    """The names of aggregates whose record says so."""
    return tuple(name for name, record in AGGREGATES.items() if keeps(record))


def is_private(record: AggregateRecord) -> bool:
    """Whether the aggregate is answered over private rows."""
    return not isinstance(record.lower, Unanswered)
