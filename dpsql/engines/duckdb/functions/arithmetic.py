"""Arithmetic. Whole-number results beyond 64 bits are NULL, and so is a division by 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.catalog.ends import ends_as, exclude_zero
from dpsql.catalog.function import common_kind
from dpsql.engines.duckdb.forms import FunctionWriter
from dpsql.engines.duckdb.types import as_double, write_typed
from dpsql.ir.expressions import Expression, Literal
from dpsql.policy.types import Kind


def _binary(symbol: str) -> FunctionWriter:
    def write(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
        if common_kind(args, symbol) is Kind.INTEGER:
            return f"TRY({f' {symbol} '.join(_whole(texts, args))})"
        return f"({as_double(texts[0], args[0])} {symbol} {as_double(texts[1], args[1])})"

    return write


def _whole(texts: Sequence[str], args: tuple[Expression, ...]) -> list[str]:
    """Two operands with types. At least one has 64 bits, so that the operation has 64 bits."""
    narrow = args[0] if all(isinstance(a, Literal) for a in args) else None
    wide = [a is narrow or a.shape.kind is Kind.NULL for a in args]
    cast = [write_typed(t, a, Kind.INTEGER) for t, a in zip(texts, args, strict=True)]
    return [c if w else t for t, c, w in zip(texts, cast, wide, strict=True)]


def _divide(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    if common_kind(args, "/") is Kind.INTEGER:
        top, bottom = _whole(texts, args)
        return f"TRY({top} // nullif({bottom}, 0))"
    top, bottom = as_double(texts[0], args[0]), as_double(texts[1], args[1])
    if (
        isinstance(args[1], Literal)
        and args[1].value
        and exclude_zero(ends_as(args[1], Kind.DOUBLE))
    ):
        return f"({top} / {bottom})"
    return f"({top} / nullif({bottom}, 0))"


def _modulo(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    if common_kind(args, "%") is Kind.INTEGER:
        top, bottom = _whole(texts, args)
        return f"TRY({top} % nullif({bottom}, 0))"
    return f"({as_double(texts[0], args[0])} % nullif({as_double(texts[1], args[1])}, 0))"


def _signed(form: str) -> FunctionWriter:
    """A form that is NULL for the least whole number, whose negative does not exist."""

    def write(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
        return form.format(write_typed(texts[0], args[0], args[0].shape.kind))

    return write


def _sign(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    return f"CAST(sign({as_double(texts[0], args[0])}) AS BIGINT)"


WRITERS: Mapping[str, FunctionWriter] = {
    "add": _binary("+"),
    "subtract": _binary("-"),
    "multiply": _binary("*"),
    "divide": _divide,
    "modulo": _modulo,
    "negate": _signed("TRY(- {0})"),
    "abs": _signed("TRY(abs({0}))"),
    "sign": _sign,
}
