"""Choosing between values, and changing their type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.catalog.function import common_kind
from dpsql.engines.duckdb.forms import FunctionWriter
from dpsql.engines.duckdb.types import engine_type, write_coerced, write_typed
from dpsql.ir.expressions import Expression
from dpsql.policy.types import INSTANT, Kind, digits_of


def _choice(name: str) -> FunctionWriter:
    """A function of values that are cast to one kind first."""

    def write(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
        kind = common_kind(args, name.upper())
        parts = ", ".join(write_coerced(t, a, kind) for t, a in zip(texts, args, strict=True))
        return f"{name}({parts})"

    return write


def _array(texts: Sequence[str], args: tuple[Expression, ...], order: str) -> str:
    """An array. If ``order`` is ``sorted``, it is sorted, since noise may have swapped values."""
    kind = common_kind(args, "ARRAY")
    parts = (write_coerced(t, a, kind) for t, a in zip(texts, args, strict=True))
    listed = f"[{', '.join(parts)}]"
    return f"list_sort({listed})" if order == "sorted" else listed


def _nullif(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    """``nullif`` with the first argument's type, as in PostgreSQL."""
    kind, own = common_kind(args, "NULLIF"), args[0].shape.kind
    if own is Kind.NULL:
        return "NULL"
    if kind is Kind.TIMESTAMP and own is not kind:
        pair = ", ".join(write_coerced(t, a, kind) for t, a in zip(texts, args, strict=True))
        return f"TRY_CAST(nullif({pair}) AS {engine_type(own)})"
    other = write_coerced(texts[1], args[1], kind) if kind is Kind.TIMESTAMP else texts[1]
    return f"nullif({write_typed(texts[0], args[0], own)}, {other})"


def cast(text: str, argument: Expression, target: Kind) -> str:
    """A value as another kind, or NULL. Numbers become texts as in PostgreSQL."""
    source, name = argument.shape.kind, argument.shape.type_name
    if source is target:
        return write_typed(text, argument, target)
    written = _written(text, name) if target is Kind.TEXT else text
    found = f"TRY_CAST({written} AS {engine_type(target)})"
    if name == INSTANT and target is Kind.TEXT:
        return f"({found} || '+00')"
    if source is Kind.DOUBLE and target is Kind.TEXT and not digits_of(name):
        return f"regexp_replace({found}, '[.]0$', '')"  # PostgreSQL writes 1, not 1.0
    return found


def _written(text: str, name: str) -> str:
    """A number cast to the type of this name, which decides how many digits are written."""
    held = "FLOAT" if name == "real" else name.upper() if digits_of(name) else ""
    return f"TRY_CAST({text} AS {held})" if held else text


WRITERS: Mapping[str, FunctionWriter] = {
    "coalesce": _choice("coalesce"),
    "nullif": _nullif,
    "array": _array,
    "least": _choice("least"),
    "greatest": _choice("greatest"),
    "cast": lambda texts, args, option: cast(texts[0], args[0], Kind(option)),
}
