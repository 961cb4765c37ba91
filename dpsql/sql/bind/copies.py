"""Expressions that a plan writes more than once."""

from __future__ import annotations

from itertools import islice

from sqlglot import exp

from dpsql.ir.expressions import Expression, walk
from dpsql.sql.bind.context import refuse

MOST_EXPRESSION_PARTS = 200
"""The most parts of an expression that may be written more than once."""


def check_copy(value: Expression, node: exp.Expr) -> Expression:
    """The value, which the plan writes more than once; refused if it is too large for that.

    Nested copies of copies would grow exponentially.
    """
    if sum(1 for _ in islice(walk(value), MOST_EXPRESSION_PARTS + 1)) > MOST_EXPRESSION_PARTS:
        raise refuse(
            "DP115",
            node,
            "this expression is too large to be used several times",
            "BETWEEN, CASE and numeric(p, s) use their operand several times. Nested in each "
            "other, they would make the statement grow without limit.",
            "Compute the operand in a subquery in FROM, and use its column.",
        )
    return value
