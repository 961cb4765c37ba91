"""The SELECT list: positions, stars, aggregates, and the names of outputs as in PostgreSQL."""

from __future__ import annotations

from sqlglot import exp

from dpsql.diagnostics.edit import Edit
from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.ir.expressions import Column
from dpsql.sql.bind.context import refuse
from dpsql.sql.bind.scope import fold_name, spell_name
from dpsql.sql.nodes import aggregate_call, is_aggregate_call
from dpsql.sql.spans import span_of


def star(node: exp.Expr) -> exp.Expr | None:
    """The node if it is ``*`` or ``t.*``, else None."""
    if isinstance(node, exp.Star) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    ):
        return node
    return None


def ordinal(node: exp.Expr, count: int) -> int | None:
    """The index in the SELECT list that a bare number means; None for other nodes."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    text = str(node.this)
    if not text.isdigit() or not 1 <= int(text) <= count:
        raise refuse(
            "DP105",
            node,
            f"there is no output column {text}",
            f"A number here is a position in the SELECT list, whose length is {count}.",
        )
    return int(text) - 1


def output_name(node: exp.Expr) -> str:
    """The name of an output as in PostgreSQL: the alias, the column, or the function."""
    if isinstance(node, exp.Alias):
        return fold_name(node.args["alias"])
    if isinstance(node, exp.Column):
        return fold_name(node.this)
    if isinstance(node, exp.Paren | exp.Filter | exp.Window | exp.Cast | exp.WithinGroup):
        return output_name(node.this)
    if isinstance(node, exp.Case):
        return "case"
    call = aggregate_call(node)
    if call is not None:
        return call[1].output
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
    """Whether the SELECT aggregates: it has GROUP BY, HAVING, or an aggregate outside windows."""
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    roots = [*select.expressions, *(o.expressions if (o := select.args.get("order")) else [])]
    return any(holds_aggregate(root) for root in roots)


def holds_aggregate(node: exp.Expr) -> bool:
    """Whether an expression calls an aggregate, outside its subqueries."""
    if isinstance(node, exp.Window):
        parts = [node.this, *(node.args.get("partition_by") or ()), node.args.get("order")]
        inner = node.this.this if isinstance(node.this, exp.Filter) else node.this
        below = [*inner.iter_expressions()] if is_aggregate_call(inner) else parts[:1]
        return any(holds_aggregate(p) for p in [*below, *parts[1:]] if p is not None)
    if is_aggregate_call(node) or isinstance(node, exp.Filter | exp.Grouping):
        return True
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    return any(holds_aggregate(child) for child in node.iter_expressions())


def refuse_ungrouped(node: exp.Expr, column: Column, *, grouped: bool, unit: str | None) -> Refused:
    """The refusal of a column that is neither a grouping key nor inside an aggregate.

    ``grouped`` is false if the query aggregates only in HAVING or ORDER BY. ``unit`` is the kind of
    unit that each row of the answer would be about, if every group is of one unit.
    """
    name, place = spell_name(column.name), column.span or span_of(node)
    average = f", AVG({name})" if column.shape.kind.numeric else ""
    means = (
        [Edit("replace", place, f"AVG({name})", f"AVG({name}) instead of {name}")]
        if average
        else []
    )
    group = Edit("group", place, name)
    if unit is not None:
        return Refused(
            Refusal(
                "DP101",
                f'this query returns one row per {unit}, and "{column.name}" is neither grouped '
                "nor inside an aggregate",
                f"Every output row would be about one {unit}. Noise cannot hide a row that is shown.",
                "Group by a column whose values many share, "
                f"or aggregate over all rows: COUNT(*){average}.",
                place,
                (*means, group),
            )
        )
    return Refused(
        Refusal(
            "DP111" if grouped else "DP101",
            f'"{column.name}" is neither grouped nor inside an aggregate'
            if grouped
            else f'this query returns rows: "{column.name}" is neither grouped nor in an aggregate',
            "A group holds rows of many people. Showing the value of one row would show one "
            "person's value.",
            f'Add "{column.name}" to GROUP BY, or aggregate it: COUNT(*){average}.',
            place,
            (group, *means),
        )
    )
