"""The scalar functions dpsql answers, one family per file. What is not here does not exist."""

from __future__ import annotations

from dpsql.catalog.function import Function, Mismatch
from dpsql.catalog.functions import arithmetic, comparison, conditional, text, time

FUNCTIONS: dict[str, Function] = {
    function.name: function
    for family in (arithmetic, comparison, conditional, text, time)
    for function in family.FAMILY
}

__all__ = ["FUNCTIONS", "Function", "Mismatch"]
