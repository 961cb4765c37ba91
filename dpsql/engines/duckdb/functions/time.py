"""Functions of dates and timestamps. Arithmetic that overflows gives NULL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.catalog.functions.time import part_kind
from dpsql.engines.duckdb.forms import FunctionWriter
from dpsql.engines.duckdb.types import engine_type, write_coerced, write_typed
from dpsql.ir.expressions import Expression
from dpsql.policy.types import Kind


def _truncate(texts: Sequence[str], args: tuple[Expression, ...], option: str) -> str:
    return f"TRY(date_trunc('{option}', {write_coerced(texts[0], args[0], Kind.TIMESTAMP)}))"


def _extract(texts: Sequence[str], args: tuple[Expression, ...], option: str) -> str:
    text = write_typed(texts[0], args[0], Kind.TIMESTAMP)
    if option == "second":
        return f"(extract('microsecond' FROM {text}) / 1e6)"
    # The cast is for constants: a NULL part of a constant would be a double.
    return f"CAST(TRY(extract('{option}' FROM {text})) AS {engine_type(part_kind(option))})"


def _to_timestamp(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    text = write_typed(texts[0], args[0], args[0].shape.kind)
    return f"TRY(make_timestamp(TRY_CAST(round(CAST({text} AS DOUBLE) * 1e6) AS BIGINT)))"


def _to_char(texts: Sequence[str], args: tuple[Expression, ...], option: str) -> str:
    return f"TRY(strftime({write_coerced(texts[0], args[0], Kind.TIMESTAMP)}, '{option}'))"


def _shift(texts: Sequence[str], args: tuple[Expression, ...], option: str) -> str:
    return f"TRY({write_coerced(texts[0], args[0], Kind.TIMESTAMP)} {option} {texts[1]})"


def _days(texts: Sequence[str], args: tuple[Expression, ...], option: str) -> str:
    first = write_typed(texts[0], args[0], Kind.DATE)
    return f"TRY({first} {option} TRY_CAST({texts[1]} AS INTEGER))"


def _difference(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    late, early = (write_typed(t, a, Kind.DATE) for t, a in zip(texts, args, strict=True))
    return f"TRY({late} - {early})"


def _to_zone(texts: Sequence[str], args: tuple[Expression, ...], option: str) -> str:
    return _change_zone(write_typed(texts[0], args[0], Kind.TIMESTAMP), "UTC", option)


def _from_zone(texts: Sequence[str], args: tuple[Expression, ...], option: str) -> str:
    """Local time to UTC. A skipped time moves forward by the gap; an ambiguous one is the later."""
    return _change_zone(write_typed(texts[0], args[0], Kind.TIMESTAMP), option, "UTC")


def _change_zone(text: str, before: str, after: str) -> str:
    """A time in another zone. Both zones are named, so the session's setting does not matter."""
    return text if before == after else f"TRY(timezone('{after}', timezone('{before}', {text})))"


WRITERS: Mapping[str, FunctionWriter] = {
    "to_zone": _to_zone,
    "from_zone": _from_zone,
    "date_trunc": _truncate,
    "extract": _extract,
    "shift": _shift,
    "days": _days,
    "to_timestamp": _to_timestamp,
    "to_char": _to_char,
    "days_between": _difference,
}
