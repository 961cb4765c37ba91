"""Writers of the catalog's functions for DuckDB, one family a file, as in the catalog.

All modules of this package are loaded. A function without a writer here cannot run.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from dpsql.engines.duckdb.forms import FunctionWriter


def _writers() -> Iterator[tuple[str, FunctionWriter]]:
    for module in sorted(iter_modules(__path__), key=lambda found: found.name):
        yield from import_module(f"{__name__}.{module.name}").WRITERS.items()


WRITERS: dict[str, FunctionWriter] = dict(_writers())
"""The writers by function name: one for each function of the catalog, and no others."""
