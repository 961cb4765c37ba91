"""The output list of a bound SELECT, and DISTINCT, ORDER BY and LIMIT over it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from dpsql.ir.expressions import Column, Expression, SortKey, columns
from dpsql.ir.relations import Project, Relation, Sort
from dpsql.sql.bind.context import Context, Output, refuse
from dpsql.sql.bind.distinct import without_repeats
from dpsql.sql.bind.limits import apply_limit
from dpsql.sql.spans import span_of


@dataclass(frozen=True, slots=True)
class Item:
    """One output of a SELECT list."""

    name: str
    node: exp.Expr | None
    value: Expression


@dataclass(frozen=True, slots=True)
class Body:
    """A SELECT before its output list: the relation, the output items, and the ORDER BY keys."""

    relation: Relation
    items: tuple[Item, ...]
    order: tuple[SortKey, ...]


def finish(select: exp.Select, context: Context, body: Body) -> Output:
    """Output list, DISTINCT, ORDER BY and LIMIT over a body."""
    outputs = tuple(_output_field(context, item) for item in body.items)
    distinct = select.args.get("distinct") is not None
    relation = body.relation
    order = select.args.get("order") or select
    if body.order and not distinct:
        relation = Sort(relation, body.order, relation.fields, relation.privacy, span_of(order))
    relation = Project(relation, tuple(i.value for i in body.items), outputs, relation.privacy)
    if distinct:
        relation = without_repeats(relation, outputs, span_of(select), context)
        if body.order:
            keys = tuple(_over_outputs(k, body.items, outputs, select) for k in body.order)
            relation = Sort(relation, keys, outputs, relation.privacy, span_of(order))
    return Output(apply_limit(relation, select), outputs)


def _output_field(context: Context, item: Item) -> Column:
    """The output column. A plain column keeps its number, so that known facts still apply."""
    if isinstance(item.value, Column):
        return replace(item.value, name=item.name)
    identifier = any(c.identifier for c in columns(item.value))
    return context.column(item.name, item.value.shape, identifier=identifier)


def _over_outputs(
    key: SortKey, items: tuple[Item, ...], outputs: tuple[Column, ...], select: exp.Select
) -> SortKey:
    for item, field in zip(items, outputs, strict=True):
        if item.value == key.value:
            return replace(key, value=field)
    raise refuse(
        "DP111",
        select.args["order"],
        "with DISTINCT, ORDER BY can only use columns of the SELECT list",
        "A row of DISTINCT may stand for several rows that differ in other columns.",
        "Add the column to the SELECT list.",
    )
