"""Roots, powers, exponentials and logarithms: functions of doubles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.engines.duckdb.forms import FunctionWriter
from dpsql.engines.duckdb.types import as_double
from dpsql.ir.expressions import Expression


def _curve(form: str) -> FunctionWriter:
    """A function of doubles, in a form that never fails."""

    def write(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
        return form.format(*(as_double(t, a) for t, a in zip(texts, args, strict=True)))

    return write


WRITERS: Mapping[str, FunctionWriter] = {
    # Values below 0 give NULL. They are all replaced by the greatest double below 0 first.
    "sqrt": _curve("TRY(sqrt(nullif(greatest({0}, -5e-324), -5e-324)))"),
    "cbrt": _curve("cbrt({0})"),
    "exp": _curve("exp({0})"),
    "ln": _curve("ln(nullif(greatest({0}, 0), 0))"),
    "log10": _curve("log10(nullif(greatest({0}, 0), 0))"),
    "power": _curve("pow({0}, {1})"),
}
