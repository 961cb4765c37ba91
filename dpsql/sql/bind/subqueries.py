"""Queries inside expressions: IN, EXISTS, and scalar subqueries.

An IN or EXISTS condition of WHERE that is over private rows, or refers to the outer query, becomes
a semi or anti join. Any other subquery is a query of its own, whose result is public when it is
used: rows of public tables, or an answer that was released before.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpsql.catalog.function import common_kind
from dpsql.catalog.functions import FUNCTIONS, Mismatch
from dpsql.ir.expressions import Call, Column, Expression, Shape, Subquery, columns, conjuncts
from dpsql.ir.relations import (
    Aggregate,
    Filter,
    Limit,
    Private,
    Project,
    Relation,
    Scan,
    Sort,
    expressions,
    inputs,
    walk_relations,
)
from dpsql.policy.types import Kind
from dpsql.sql.bind.binder import Binder
from dpsql.sql.bind.context import refuse
from dpsql.sql.bind.join_rules import join
from dpsql.sql.bind.scope import Scope
from dpsql.sql.narrow import conjunction
from dpsql.sql.spans import span_of


def bind_subquery(scalars: Binder, node: exp.Expr) -> Expression:
    """The bound subquery of an IN, of an EXISTS, or in brackets."""
    context = scalars.context
    assert context.query is not None
    inner = node.args["query"] if isinstance(node, exp.In) else node.this
    around = replace(scalars.scope, aliases={})
    scope = Scope(ctes=scalars.scope.ctes, outer=around)
    output = context.query(inner, context, scope)
    place, text = span_of(node), inner.sql("postgres", comments=False)
    if isinstance(node, exp.Exists):
        rows = _rows_alone(output.relation)
        return Subquery("exists", None, text, rows, None, Shape(Kind.BOOLEAN, False), place)
    if len(output.columns) != 1:
        raise refuse(
            "DP201",
            node,
            "this subquery has more than one column",
            "It is compared with one value.",
        )
    column = output.columns[0]
    if not isinstance(node, exp.In):
        _require_one_row(node, output.relation)
        shape = Shape(column.shape.kind, type_name=column.shape.type_name)
        return Subquery("scalar", None, text, output.relation, column, shape, place)
    value = scalars.bind(node.this)
    try:
        kind = common_kind((value, column), "IN")
    except Mismatch as mismatch:
        raise refuse(
            "DP201", node, str(mismatch), "Both sides of a comparison must have types that fit."
        ) from None
    relation = output.relation
    shape = Shape(Kind.BOOLEAN, value.shape.nullable or column.shape.nullable)
    if kind is Kind.TIMESTAMP and column.shape.kind is Kind.DATE and not _is_tied(relation):
        moment = scalars.call(
            "cast", (column,), node, kind.value
        )  # the column gets the type of the value that it is compared with
        column = context.column(column.name, moment.shape, identifier=column.identifier)
        relation = Project(relation, (moment,), (column,), relation.privacy)
    bound: Expression = Subquery("in", value, text, relation, column, shape, place)
    return scalars.call("not", (bound,), node) if node.args.get("negate") else bound


def _require_one_row(node: exp.Expr, relation: Relation) -> None:
    """Refuse a scalar subquery unless its form gives at most one row, whatever the data."""
    while isinstance(relation, Project | Sort | Filter):
        relation = relation.input
    single = isinstance(relation, Aggregate) and not (relation.keys or relation.sets)
    if not single and not (isinstance(relation, Limit) and relation.count == 1):
        raise refuse(
            "DP112",
            node,
            "this subquery may have more than one row",
            "A single value is needed here, and whether there is exactly one must not depend on "
            "data.",
            "Aggregate without GROUP BY, or end it with LIMIT 1.",
        )


def unnest_conditions(
    relation: Relation, condition: Expression | None, node: exp.Expr
) -> tuple[Relation, Expression | None]:
    """Turn subquery conditions that need it into semi or anti joins.

    Returns the joined relation and the remaining condition.
    """
    rest: list[Expression] = []
    for part in [] if condition is None else conjuncts(condition):
        subquery, kept = _as_condition(part)
        if subquery is not None and _needs_join(subquery):
            relation = _half_join(relation, subquery, node, kept=kept)
        else:
            rest.append(part)
    return relation, conjunction(rest) if rest else None


def _as_condition(part: Expression) -> tuple[Subquery | None, bool]:
    """The subquery if it is the whole condition, and whether rows with a match are kept."""
    if isinstance(part, Call) and part.function == "not":
        inner, kept = _as_condition(part.args[0])
        return inner, not kept
    if isinstance(part, Subquery) and part.form in ("in", "exists"):
        return part, True
    return None, True


def _needs_join(subquery: Subquery) -> bool:
    return _is_tied(subquery.relation)


def _is_tied(relation: Relation) -> bool:
    """Whether the relation depends on private rows, or on rows of the outer query."""
    return isinstance(relation.privacy, Private) or bool(free_columns(relation))


def free_columns(relation: Relation) -> set[int]:
    """The numbers of the columns of outer queries that a query refers to.

    A column that an operator passes through keeps its number, and does not count as made there.
    """
    made: set[int] = set()
    used: set[int] = set()
    for part in walk_relations(relation):
        read = {c.number for e in expressions(part) for c in columns(e)}
        below = {f.number for part_below in inputs(part) for f in part_below.fields}
        made |= {f.number for f in part.fields} - read - below
        if isinstance(part, Scan):
            made |= {f.number for f in part.unit_fields}
        used |= read
    return used - made


def _rows_alone(relation: Relation) -> Relation:
    """The query of an EXISTS, without an output list that refers to columns of the outer query."""
    if isinstance(relation, Project) and free_columns(relation) - free_columns(relation.input):
        return relation.input
    return relation


def _half_join(relation: Relation, subquery: Subquery, node: exp.Expr, *, kept: bool) -> Relation:
    """A semi join if matches are kept, else an anti join.

    For NOT IN an unknown comparison counts as a match, as in SQL.
    """
    outer = free_columns(subquery.relation)
    inner, conditions = pull_conditions(subquery.relation, outer)
    if subquery.form == "in":
        assert subquery.value is not None
        assert subquery.column is not None
        conditions = [_equal(subquery.value, subquery.column, sure=kept), *conditions]
    if not conditions or free_columns(inner):
        raise refuse(
            "DP112",
            node,
            "this subquery cannot be joined to the query around it",
            "Its own WHERE must tie it to the rows of the query around it.",
            "Write it as a JOIN, or as EXISTS (SELECT 1 FROM ... WHERE inner.key = outer.key).",
        )
    kind = "semi" if kept else "anti"
    made = join(kind, relation, inner, conjunction(conditions))
    return replace(made, span=subquery.span)


def _equal(value: Expression, column: Column, *, sure: bool) -> Expression:
    same = equal(value, column)
    if sure or not same.shape.nullable:
        return same
    return _call("not", _call("is_false", same))


def equal(one: Expression, other: Expression) -> Expression:
    """The condition that two values are equal."""
    return _call("eq", one, other)


def not_null(value: Expression) -> Expression:
    """The condition that a value is not NULL."""
    return _call("not", _call("is_null", value))


def _call(name: str, *args: Expression) -> Expression:
    return Call(name, args, FUNCTIONS[name].shape(args, ""))


def pull_conditions(relation: Relation, outer: set[int]) -> tuple[Relation, list[Expression]]:
    """The query without the conditions that refer to the outer query, and these conditions."""
    match relation:
        case Project(input=below):
            inner, found = pull_conditions(below, outer)
            if not found:
                return relation, []
            # The inner columns of the conditions must stay visible above the output list.
            extra = tuple(f for f in inner.fields if f not in relation.fields)
            values, fields = relation.values + extra, relation.fields + extra
            return replace(relation, input=inner, values=values, fields=fields), found
        case Filter(input=below, predicate=predicate):
            inner, found = pull_conditions(below, outer)
            parts = conjuncts(predicate)
            tied = [p for p in parts if {c.number for c in columns(p)} & outer]
            own = [p for p in parts if p not in tied]
            found += tied
            if own:
                inner = replace(relation, input=inner, predicate=conjunction(own))
            return inner, found
        case _:
            return relation, []
