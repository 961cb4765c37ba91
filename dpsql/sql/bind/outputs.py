"""The SELECT list: positions, stars, aggregates, and PostgreSQL's names for outputs."""

from __future__ import annotations

from sqlglot import exp

from dpsql.sql.bind.aggregate_calls import NAMES
from dpsql.sql.bind.context import refuse
from dpsql.sql.bind.scope import folded


def star(node: exp.Expr) -> exp.Expr | None:
    """The node if it stands for all columns, of everything or of one table."""
    if isinstance(node, exp.Star) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    ):
        return node
    return None


def ordinal(node: exp.Expr, count: int) -> int | None:
    """The place in the SELECT list that a bare number means."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    text = str(node.this)
    if not text.isdigit() or not 1 <= int(text) <= count:
        raise refuse(
            "DP105",
            node,
            f"there is no output column {text}",
            f"A number here means a position in the SELECT list, which has {count}.",
        )
    return int(text) - 1


def output_name(node: exp.Expr) -> str:
    """PostgreSQL's names for outputs: the alias, the column, or the function."""
    if isinstance(node, exp.Alias):
        return folded(node.args["alias"])
    if isinstance(node, exp.Column):
        return folded(node.this)
    if isinstance(node, exp.Paren | exp.Filter | exp.Window | exp.Cast | exp.WithinGroup):
        return output_name(node.this)
    if isinstance(node, exp.Case):
        return "case"
    if type(node) in NAMES:
        return {"stddev_samp": "stddev", "var_samp": "variance"}.get(
            NAMES[type(node)], NAMES[type(node)]
        )
    if isinstance(node, exp.TimestampTrunc):
        return "date_trunc"
    if isinstance(node, exp.AtTimeZone):
        return "timezone"
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector):
        return str(node.sql_name()).lower()
    return "?column?"


def aggregates(select: exp.Select) -> bool:
    """Whether the SELECT groups: by a clause, or by an aggregate call outside windows."""
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    roots = [*select.expressions, *(o.expressions if (o := select.args.get("order")) else [])]
    return any(holds_aggregate(root) for root in roots)


def holds_aggregate(node: exp.Expr) -> bool:
    """Whether an expression calls an aggregate, outside queries of its own."""
    if isinstance(node, exp.Window):
        parts = [node.this, *(node.args.get("partition_by") or ()), node.args.get("order")]
        inner = node.this.this if isinstance(node.this, exp.Filter) else node.this
        below = [*inner.iter_expressions()] if type(inner) in NAMES else parts[:1]
        return any(holds_aggregate(p) for p in [*below, *parts[1:]] if p is not None)
    if type(node) in NAMES or isinstance(node, exp.Filter | exp.Grouping):
        return True
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    return any(holds_aggregate(child) for child in node.iter_expressions())
