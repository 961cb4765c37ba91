"""Interval functions of a query, and the released columns that their value is computed from.

Claim: an interval is computed from released values and public noise laws alone, so it is free.
Assumes: the noise of released columns is drawn as it was priced.
Argument: ``trace_to_table`` follows a value down to one released table, through operators that make
    each row from one row. If it cannot, or if the value was chosen by its rank, the query is
    refused before anything is spent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpsql.catalog.statistic import Ranked
from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.effort import step
from dpsql.ir.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    Shape,
    columns,
    substitute,
)
from dpsql.ir.expressions import walk as parts
from dpsql.ir.relations import (
    Filter,
    Limit,
    Project,
    Relation,
    Sort,
    Stored,
    Windowed,
    expressions,
    inputs,
    walk_relations,
    with_expressions,
    with_inputs,
)
from dpsql.plan.nodes import Plan
from dpsql.plan.noise_alone import without_hiding
from dpsql.policy.types import Kind
from dpsql.sql.own import OWN

NAMES = tuple(OWN.values())
NOTHING = Literal(None, Shape(Kind.DOUBLE))
"""The interval of a value without noise."""


def find_interval_calls(relation: Relation) -> Iterator[Call]:
    """The calls of interval functions in this operator's own expressions."""
    for expression in expressions(relation):
        for part in parts(expression):
            if isinstance(part, Call) and part.function in NAMES:
                yield part


def trace_to_table(relation: Relation, value: Expression) -> tuple[Expression, Stored] | None:
    """The value over the columns of one stored table; None if it combines several rows.

    A window beside the value does not change its row. A value that uses a window combines rows.
    A value is traced as if it were never hidden.
    """
    definitions: dict[int, Expression] = {}
    current = relation
    while isinstance(current, Limit | Sort | Filter | Project | Windowed):
        step(len(current.fields))
        if isinstance(current, Project):
            for column, made in zip(current.fields, current.values, strict=True):
                if not isinstance(made, Column) or made.number != column.number:
                    definitions[column.number] = made
        current = current.input
    if not isinstance(current, Stored):
        return None
    expanded = without_hiding(_expanded(value, definitions))
    own = {f.number for f in current.fields}
    return (expanded, current) if all(c.number in own for c in columns(expanded)) else None


def _expanded(node: Expression, definitions: Mapping[int, Expression]) -> Expression:
    def swap(part: Expression) -> Expression | None:
        if isinstance(part, Column) and part.number in definitions:
            return _expanded(definitions[part.number], definitions)
        return None

    return substitute(node, swap)


def without_intervals(relation: Relation) -> Relation:
    """A public relation with NULL for all intervals, because exact values have none."""
    below = tuple(without_intervals(r) for r in inputs(relation))
    return with_expressions(with_inputs(relation, below), _nothing)


def _nothing(node: Expression) -> Expression:
    return substitute(
        node, lambda n: NOTHING if isinstance(n, Call) and n.function in NAMES else None
    )


def check(plan: Plan) -> None:
    """Refuse intervals that could not be computed, before anything is spent."""
    chosen = {
        column.number
        for m in plan.measurements
        for column, statistic in zip(m.columns, m.statistics, strict=True)
        if isinstance(statistic, Ranked)
    }
    for lookup in plan.lookups:
        for relation in walk_relations(lookup.relation):
            for call in find_interval_calls(relation):
                raise Refused(_combined(call))
    for relation in walk_relations(plan.output):
        for call in find_interval_calls(relation):
            below = inputs(relation)
            found = trace_to_table(below[0], call.args[0]) if len(below) == 1 else None
            if found is None or any(p in NAMES for p in _functions(found[0])):
                raise Refused(_combined(call))
            if any(c.number in chosen for c in columns(found[0])):
                raise Refused(_by_rank(call))


def _functions(node: Expression) -> Iterator[str]:
    return (part.function for part in parts(node) if isinstance(part, Call))


def _combined(call: Call) -> Refusal:
    return Refusal(
        "DP110",
        "the interval of this expression is not known",
        "An interval is computed from the noise of one row of one noised result. Here rows were "
        "joined, added up or looked up in between.",
        "Ask for the interval in the SELECT that aggregates, and use its column from there on.",
        call.span,
    )


def _by_rank(call: Call) -> Refusal:
    return Refusal(
        "DP110",
        "a value that is chosen by its rank has no interval",
        "How much the value changes with the rank depends on the rows around it, which are not "
        "public.",
        "EXPLAIN says by how many rows the rank may be off.",
        call.span,
    )
