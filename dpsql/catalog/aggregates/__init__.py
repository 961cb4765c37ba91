"""The aggregates that dpsql answers: every record of every module of this folder.

Every module of this folder is imported. An aggregate without a record is refused.
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
"""All records, by the name that the aggregate has in plans."""


def names_where(keeps: Callable[[AggregateRecord], bool]) -> tuple[str, ...]:
    """The names of the aggregates whose record satisfies ``keeps``."""
    return tuple(name for name, record in AGGREGATES.items() if keeps(record))


def is_private(record: AggregateRecord) -> bool:
    """Whether the aggregate is answered over private rows."""
    return not isinstance(record.lower, Unanswered)
