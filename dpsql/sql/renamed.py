"""Calls that the parser knows under another name, or only in another dialect."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

_KNOWN: dict[tuple[str, int], Callable[[list[exp.Expr]], exp.Func]] = {
    ("QUANTILE_CONT", 2): lambda a: exp.PercentileCont(this=a[0], expression=a[1]),
    ("QUANTILE_DISC", 2): lambda a: exp.PercentileDisc(this=a[0], expression=a[1]),
    ("EVERY", 1): lambda a: exp.LogicalAnd(this=a[0]),
    ("APPROX_PERCENTILE", 2): lambda a: exp.ApproxQuantile(this=a[0], quantile=a[1]),
}
"""The functions that make the node of a call, by its name and number of arguments."""


def rename_calls(tree: exp.Expr) -> None:
    """Replace such calls by nodes of the class that the parser has, and FETCH by LIMIT."""
    for fetch in list(tree.find_all(exp.Fetch)):
        if _only_counts(fetch):
            limit = exp.Limit(expression=fetch.args.get("count") or exp.Literal.number(1))
            limit.meta.update(fetch.meta)
            fetch.replace(limit)
    for node in list(tree.find_all(exp.Anonymous)):
        make = _KNOWN.get((str(node.this).upper(), len(node.expressions)))
        if make is not None and node.parent is not None:
            new = make(node.expressions)
            new.meta.update(node.meta)
            node.replace(new)


def _only_counts(fetch: exp.Fetch) -> bool:
    """Whether the clause is ``FETCH FIRST n ROWS ONLY``, without PERCENT and WITH TIES."""
    said = {name for name, value in fetch.args.items() if value is not None}
    options = fetch.args.get("limit_options")
    asked = {} if options is None else options.args
    plain = not any(value for name, value in asked.items() if name != "rows")
    return said <= {"direction", "count", "limit_options"} and plain
