"""The scalar functions dpsql answers, one family per file. What is not here does not exist."""

from __future__ import annotations

from dpsql.sql.functions import arithmetic, comparison, conditional, text, time
from dpsql.sql.functions.function import Function, Mismatch

FUNCTIONS: dict[str, Function] = {
    function.name: function
    for family in (arithmetic, comparison, conditional, text, time)
    for function in family.FAMILY
}

__all__ = ["FUNCTIONS", "Function", "Mismatch"]
