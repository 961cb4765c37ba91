"""Functions of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.engines.duckdb.forms import FunctionWriter, call
from dpsql.engines.duckdb.functions.conditional import cast
from dpsql.ir.expressions import Expression
from dpsql.policy.types import Kind


def _trimming(name: str) -> FunctionWriter:
    """A trim function. The option has the characters to remove; by default these are spaces."""

    def write(texts: Sequence[str], _: tuple[Expression, ...], option: str) -> str:
        characters = (option or " ").replace("'", "''")
        return f"{name}({texts[0]}, '{characters}')"

    return write


def _concat(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    parts = (cast(t, a, Kind.TEXT) for t, a in zip(texts, args, strict=True))
    return "(" + " || ".join(parts) + ")"


WRITERS: Mapping[str, FunctionWriter] = {
    "lower": call("lower"),
    "upper": call("upper"),
    "trim": _trimming("trim"),
    "ltrim": _trimming("ltrim"),
    "rtrim": _trimming("rtrim"),
    "length": call("length"),
    "substring": call("substring"),
    "left": call('"left"'),
    "right": call('"right"'),
    "concat": _concat,
    "strpos": call("strpos"),
    "replace": call("replace"),
    "starts_with": call("starts_with"),
}
