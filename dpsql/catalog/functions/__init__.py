"""The scalar functions that dpsql answers, one family per module. All others are refused.

Every module of this folder is imported.
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
