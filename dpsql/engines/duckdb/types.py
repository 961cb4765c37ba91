"""DuckDB's names of types, and casts to them that never fail."""

from __future__ import annotations

from dpsql.ir.expressions import Expression, Literal
from dpsql.policy.types import Kind

_ENGINE_TYPE = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.DOUBLE: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
_ENGINE_TYPE |= {kind.several: f"{name}[]" for kind, name in _ENGINE_TYPE.items()}


def engine_type(kind: Kind) -> str:
    """The engine's name for a kind."""
    return _ENGINE_TYPE[kind]


def write_typed(text: str, argument: Expression, kind: Kind) -> str:
    """The text with an explicit type, if the engine would read a narrower type or none.

    The engine reads whole constants as 32 bits if they fit, and NULL without a type.
    """
    untyped = argument.shape.kind is Kind.NULL or (
        isinstance(argument, Literal) and (argument.value is None or kind is Kind.INTEGER)
    )
    return f"CAST({text} AS {engine_type(kind)})" if untyped and kind in _ENGINE_TYPE else text


def write_coerced(text: str, argument: Expression, kind: Kind) -> str:
    """The text of an argument, cast to the common kind of all arguments."""
    if argument.shape.kind in (kind, Kind.NULL):
        return write_typed(text, argument, kind)
    return f"TRY_CAST({text} AS {engine_type(kind)})"


def as_double(text: str, argument: Expression) -> str:
    """The text of an argument as a double."""
    if argument.shape.kind is Kind.DOUBLE:
        return text
    return f"CAST({text} AS DOUBLE)"
