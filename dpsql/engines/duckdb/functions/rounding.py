"""Rounding of numbers. A whole number only changes if digits before the point are rounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.catalog.functions.rounding import round_digits
from dpsql.engines.duckdb.forms import FunctionWriter
from dpsql.engines.duckdb.types import write_typed
from dpsql.ir.expressions import Expression
from dpsql.policy.types import Kind


def _stepped(name: str) -> FunctionWriter:
    def write(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
        if args[0].shape.kind is Kind.DOUBLE:
            return f"{name}({texts[0]})"
        return write_typed(texts[0], args[0], Kind.INTEGER)

    return write


def _round(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    digits = round_digits(args)
    if args[0].shape.kind is Kind.DOUBLE:
        return f"round({texts[0]}, {digits})"
    whole = write_typed(texts[0], args[0], Kind.INTEGER)
    return whole if digits >= 0 else f"TRY(round({whole}, {digits}))"


WRITERS: Mapping[str, FunctionWriter] = {
    "floor": _stepped("floor"),
    "ceil": _stepped("ceil"),
    "trunc": _stepped("trunc"),
    "round": _round,
}
