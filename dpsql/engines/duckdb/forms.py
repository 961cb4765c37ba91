"""How DuckDB writes a function: what the writers of functions are, and the commonest of them.

A writer of a function gives text that never fails, whatever the rows hold: a failure would tell the
analyst about them. Its result has the engine's type of the shape's kind. It holds each argument's text at
most once, so that nested calls stay as long as what was written. Constants come to it untyped (see
``types.write_typed``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpsql.ir.expressions import Expression

FunctionWriter = Callable[[Sequence[str], tuple[Expression, ...], str], str]
"""Text of a call: from the texts of its arguments, the arguments, and its option."""


def call(name: str) -> FunctionWriter:
    """A function that DuckDB has under this name.

    >>> call("lower")(["x"], (), "")
    'lower(x)'
    """
    return lambda texts, _, __: f"{name}({', '.join(texts)})"


def template(form: str) -> FunctionWriter:
    """A fixed form with a place for each argument.

    >>> template("({0} IS NULL)")(["x"], (), "")
    '(x IS NULL)'
    """
    return lambda texts, _, __: form.format(*texts)


def infix(symbol: str) -> FunctionWriter:
    """An operator between its operands.

    >>> infix("AND")(["a", "b", "c"], (), "")
    '(a AND b AND c)'
    """
    return lambda texts, _, __: f"({f' {symbol} '.join(texts)})"
