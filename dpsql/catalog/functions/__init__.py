"""The scalar functions dpsql answers, one family per file. What is not here does not exist.

A family is found because its module is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from dpsql.catalog.function import Function, FunctionRecord, Mismatch


def _records() -> Iterator[FunctionRecord]:
    for module in sorted(iter_modules(__path__), key=lambda found: found.name):
        yield from import_module(f"{__name__}.{module.name}").RECORDS


RECORDS: dict[str, FunctionRecord] = {record.function.name: record for record in _records()}
FUNCTIONS: dict[str, Function] = {name: record.function for name, record in RECORDS.items()}

__all__ = ["FUNCTIONS", "RECORDS", "Function", "FunctionRecord", "Mismatch"]
