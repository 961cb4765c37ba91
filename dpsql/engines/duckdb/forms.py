"""Writers of functions for DuckDB: their type, and the most common ones.

A writer of a function gives text that never fails, whatever the rows hold, because a failure would
tell the analyst about them. The result has the engine's type for the shape's kind. The text has
each argument's text at most once, so that the length of nested calls stays proportional to the
client's text. Constants are passed to a writer without a type (see ``types.write_typed``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpsql.ir.expressions import Expression

FunctionWriter = Callable[[Sequence[str], tuple[Expression, ...], str], str]
"""Makes the text of a call from the texts of its arguments, the arguments, and its option."""


def call(name: str) -> FunctionWriter:
    """A function that DuckDB has under this name.

    >>> call("lower")(["x"], (), "")
    'lower(x)'
    """
    return lambda texts, _, __: f"{name}({', '.join(texts)})"


def template(form: str) -> FunctionWriter:
    """A fixed form with placeholders for the arguments.

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
