"""Queries: SELECT, set operations, VALUES, WITH."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from dpsql.diagnostics.refusal import Refused
from dpsql.ir.expressions import Column, SortKey
from dpsql.ir.relations import Relation, Sort
from dpsql.sql.bind.context import Catalog, Context, Output, refuse
from dpsql.sql.bind.limits import apply_limit
from dpsql.sql.bind.scope import Scope, fold_name, same
from dpsql.sql.bind.select import bind_select
from dpsql.sql.bind.set_operations import combine_queries
from dpsql.sql.bind.sources import bind_values
from dpsql.sql.bind.window_calls import sort_key
from dpsql.sql.parse import Parsed, Source
from dpsql.sql.spans import span_of


@dataclass(frozen=True, slots=True)
class Bound:
    """A typed query: its relation, its output columns, and the tables it reads."""

    source: Source
    relation: Relation
    columns: tuple[Column, ...]
    tables: tuple[str, ...]


def bind(parsed: Parsed, catalog: Catalog) -> Bound:
    """Resolve every name and type every value of a parsed query."""
    context = Context(catalog, parsed.source.parameters)
    try:
        context.query = bind_query
        output = bind_query(parsed.tree, context, Scope())
    except Refused as refused:
        raise refused.within(parsed.source.text) from None
    return Bound(parsed.source, output.relation, output.columns, tuple(context.tables))


def bind_query(node: exp.Expr, context: Context, ctes: Scope) -> Output:
    """Bind any kind of query; ``ctes`` has the CTEs of the queries around it."""
    scope = _with(node, ctes)
    match node:
        case exp.Select():
            return bind_select(node, context, scope, bind_query)
        case exp.Subquery():
            return bind_query(node.this, context, scope)
        case exp.Values():
            return bind_values(node, context, scope)
        case exp.SetOperation():
            return _set_operation(node, context, scope)
        case _:
            raise refuse("DP100", node, "this is not a query", "Only queries are answered.")


def _with(node: exp.Expr, outer: Scope) -> Scope:
    clause = node.args.get("with_")
    scope = replace(outer, sources=(), aliases={}, merged=frozenset())
    for cte in [] if clause is None else clause.expressions:
        alias = cte.args["alias"]
        names = tuple(fold_name(c) for c in alias.args.get("columns") or ())
        name = fold_name(alias.this)
        if any(same(name, table) for table in scope.ctes):
            raise refuse("DP106", cte, f'"{name}" is defined twice', "Each name has one meaning.")
        scope = replace(scope, ctes={**scope.ctes, name: (cte.this, scope, names)})
    return scope


def _set_operation(node: exp.SetOperation, context: Context, scope: Scope) -> Output:
    sides = [bind_query(part, context, scope) for part in (node.this, node.expression)]
    output = combine_queries(node, sides, context)
    relation, order = output.relation, node.args.get("order")
    if order is not None:
        keys = tuple(_output_key(item, output.columns) for item in order.expressions)
        relation = Sort(relation, keys, relation.fields, relation.privacy, span_of(order))
    return Output(apply_limit(relation, node), output.columns)


def _output_key(item: exp.Expr, fields: tuple[Column, ...]) -> SortKey:
    node = item.this
    if isinstance(node, exp.Literal) and str(node.this).isdigit():
        position = int(str(node.this)) - 1
        if 0 <= position < len(fields):
            return sort_key(fields[position], item)
    if isinstance(node, exp.Column):
        named = [f for f in fields if same(f.name, fold_name(node.this))]
        if named:
            return sort_key(named[0], item)
    raise refuse(
        "DP105",
        node,
        "a set operation can only be sorted by its output columns",
        "The rows of a set operation have no other columns.",
    )


__all__ = ["Bound", "Catalog", "bind", "bind_query"]
