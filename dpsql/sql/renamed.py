"""Functions that the parser knows under another name, or only in another dialect."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

_KNOWN: dict[tuple[str, int], Callable[[list[exp.Expr]], exp.Func]] = {
    ("QUANTILE_CONT", 2): lambda a: exp.PercentileCont(this=a[0], expression=a[1]),
    ("QUANTILE_DISC", 2): lambda a: exp.PercentileDisc(this=a[0], expression=a[1]),
    ("EVERY", 1): lambda a: exp.LogicalAnd(this=a[0]),
    ("APPROX_PERCENTILE", 2): lambda a: exp.ApproxQuantile(this=a[0], quantile=a[1]),
}
"""By name and number of arguments."""


def renamed(tree: exp.Expr) -> None:
    """Give such calls the class of the function that they are."""
    for node in list(tree.find_all(exp.Anonymous)):
        make = _KNOWN.get((str(node.this).upper(), len(node.expressions)))
        if make is not None and node.parent is not None:
            new = make(node.expressions)
            new.meta.update(node.meta)
            node.replace(new)
