"""Comparisons of rows as comparisons of their values.

These are ``(a, b) = (c, d)`` and ``(a, b) IN ((1, 2), (3, 4))``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sqlglot import exp

from dpsql.ir.expressions import Expression
from dpsql.sql.bind.binder import Binder
from dpsql.sql.bind.context import refuse
from dpsql.sql.bind.copies import check_copy

MOST_LISTED_ROWS = 200
"""The most rows that one IN may list: each becomes a condition."""


def compares_rows(node: exp.Expr) -> bool:
    """Whether the node compares a row on its left side with literal rows, not with a query."""
    compared = isinstance(node, exp.EQ | exp.NEQ | exp.In) and isinstance(node.this, exp.Tuple)
    return compared and node.args.get("query") is None


def bind_rows(self: Binder, node: exp.Expr) -> Expression:
    """TRUE if all pairs of a row are equal, FALSE if a pair differs, else NULL, as in SQL.

    With IN this is combined over the listed rows by OR.
    """
    listed = node.expressions if isinstance(node, exp.In) else [node.expression]
    if len(listed) > MOST_LISTED_ROWS:
        raise refuse(
            "DP115",
            node,
            f"more than {MOST_LISTED_ROWS} rows",
            "Each row becomes a condition of its own.",
            "Compare with fewer rows, or join a public table that has them.",
        )
    left = [self.bind(value) for value in node.this.expressions]
    found = reduce(
        lambda a, b: self.call("or", (a, b), node), [_equal(self, node, left, r) for r in listed]
    )
    if isinstance(node, exp.NEQ):
        return self.call("not", (found,), node)
    return self.negated(node, found)


def _equal(self: Binder, node: exp.Expr, left: Sequence[Expression], row: exp.Expr) -> Expression:
    values = row.expressions if isinstance(row, exp.Tuple) else []
    if len(values) != len(left):
        raise refuse(
            "DP201",
            row,
            "these rows have different numbers of values",
            "Values are compared by position.",
            "(a, b) = (c, d)",
        )
    pairs = [
        self.call("eq", (check_copy(a, node), self.bind(b)), exp.EQ(this=b))
        for a, b in zip(left, values, strict=True)
    ]
    return reduce(lambda a, b: self.call("and", (a, b), node), pairs)
