"""Comparisons of rows, as those of their values: ``(a, b) = (c, d)``, ``(a, b) IN ((1, 2), (3, 4))``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sqlglot import exp

from dpsql.ir.expressions import Expression
from dpsql.sql.bind.binder import Binder
from dpsql.sql.bind.context import refuse
from dpsql.sql.bind.copies import check_copy

MOST_LISTED_ROWS = 200
"""Rows that one IN may list: each becomes a condition."""


def compares_rows(node: exp.Expr) -> bool:
    """Whether a row stands on the left side of a comparison with rows that are written out."""
    compared = isinstance(node, exp.EQ | exp.NEQ | exp.In) and isinstance(node.this, exp.Tuple)
    return compared and node.args.get("query") is None


def bind_rows(self: Binder, node: exp.Expr) -> Expression:
    """True where all pairs are equal, false where one pair differs, as SQL has it; else NULL."""
    listed = node.expressions if isinstance(node, exp.In) else [node.expression]
    if len(listed) > MOST_LISTED_ROWS:
        raise refuse(
            "DP115", node, f"more than {MOST_LISTED_ROWS} rows", "Each row is a condition.",
            "Compare with fewer rows, or join a public table that has them.",
        )  # fmt: skip
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
            "DP201", row, "these rows have different numbers of values", "Values pair by position.",
            "(a, b) = (c, d)",
        )  # fmt: skip
    pairs = [
        self.call("eq", (check_copy(a, node), self.bind(b)), exp.EQ(this=b))
        for a, b in zip(left, values, strict=True)
    ]
    return reduce(lambda a, b: self.call("and", (a, b), node), pairs)
