"""How DuckDB writes the functions of the catalog, one family a file, as there.

A family is found because its module is here. What is not written here cannot run.
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
"""By the name of the function. There is one for each function of the catalog, and for no other."""
