"""Correlated scalar subqueries, as joins with a grouped query.

``x < (SELECT AVG(y) FROM t WHERE t.k = outer.k)`` becomes a left join with ``SELECT k, AVG(y) FROM
t GROUP BY k`` on ``k``. Joins and groups then keep the invariant by their own rules. If the inner
rows are grouped by the unit, they stay private. Otherwise they are measured, and the result is
noised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsql.catalog.aggregates import names_where
from dpsql.ir.expressions import (
    Call,
    Column,
    Expression,
    Subquery,
    columns,
    conjuncts,
    substitute,
    walk,
)
from dpsql.ir.relations import Aggregate, Private, Project, Relation
from dpsql.sql.bind import privacy
from dpsql.sql.bind.context import Context
from dpsql.sql.bind.determined import unit_of
from dpsql.sql.bind.join_rules import equalities, join, led_to_one_unit, units_equal
from dpsql.sql.bind.subqueries import equal, free_columns, pull_conditions
from dpsql.sql.narrow import conjunction

_NULL_OF_NOTHING = names_where(lambda record: record.correlated)
"""Aggregates that are NULL over no rows, like the columns of a left join without a match."""


def decorrelate(
    relation: Relation, condition: Expression | None, context: Context
) -> tuple[Relation, Expression | None]:
    """Join each correlated aggregate of the condition to the relation.

    Returns the joined relation and the condition over its columns.
    """
    if condition is None:
        return relation, None
    parts = []
    for part in conjuncts(condition):
        for subquery in [p for p in walk(part) if isinstance(p, Subquery)]:
            grouped = _grouped(subquery, relation, context)
            if grouped is not None:
                relation = join("left", relation, grouped.relation, grouped.condition)
                relation = replace(relation, span=subquery.span)
                part = _with(part, subquery, grouped.column)  # noqa: PLW2901 (one after another)
        parts.append(part)
    return relation, conjunction(parts)


@dataclass(frozen=True, slots=True)
class _Found:
    """A subquery as a relation with one row per key, the join condition, and the result column."""

    relation: Relation
    condition: Expression
    column: Column


def _grouped(subquery: Subquery, around: Relation, context: Context) -> _Found | None:
    """The subquery, grouped by the values that its conditions compare with the outer row.

    It is also grouped by the unit if foreign keys say that its rows are of the outer row's unit.
    Each group is then of that unit alone, so it stays private and no group is suppressed.
    """
    outer = free_columns(subquery.relation)
    if subquery.form != "scalar" or not outer or subquery.column is None:
        return None
    outputs: list[Project] = []
    relation = subquery.relation
    while isinstance(relation, Project):
        outputs.append(relation)
        relation = relation.input
    if not isinstance(relation, Aggregate) or relation.keys or relation.sets:
        return None
    if any(call.function not in _NULL_OF_NOTHING for call in relation.calls):
        return None
    inner, conditions = pull_conditions(relation.input, outer)
    sides = [_sides(c, outer) for c in conditions]
    pairs = {mine: other for side in sides if side is not None for mine, other in [side]}
    if not pairs or len(pairs) < len(sides):
        return None
    keys = tuple(pairs)
    fields = tuple(_key_field(k, context) for k in keys)
    matches = [equal(f, other) for f, other in zip(fields, pairs.values(), strict=True)]
    if led_to_one_unit(around, inner, equalities(matches)) and units_equal(around, inner):
        unit = unit_of(inner, keys)
        keys, fields = (*keys, *unit), (*fields, *unit)
    whole = fields + relation.fields
    state = privacy.group_privacy(inner.privacy, keys, whole)
    made: Relation = Aggregate(
        inner, keys, relation.calls, whole, state, relation.span,
        called=context.called(*(f.name for f in fields)),
    )  # fmt: skip
    for output in reversed(outputs):
        values, shown = output.values + fields, output.fields + fields
        made = Project(made, values, shown, state, output.span)
    if free_columns(made):
        return None
    if isinstance(state, Private) and len(keys) > len(pairs):
        matches += units_equal(around, made)
    column = replace(subquery.column, shape=subquery.column.shape.optional())
    return _Found(made, conjunction(matches), column)


def _sides(condition: Expression, outer: set[int]) -> tuple[Expression, Expression] | None:
    """The inner and the outer side of an equality; None for other conditions."""
    if not isinstance(condition, Call) or condition.function != "eq":
        return None
    for mine, other in (condition.args, condition.args[::-1]):
        inside = {c.number for c in columns(mine)}
        outside = {c.number for c in columns(other)}
        if inside and not inside & outer and outside and outside <= outer:
            return mine, other
    return None


def _key_field(key: Expression, context: Context) -> Column:
    if isinstance(key, Column):
        return key
    identifier = any(c.identifier for c in columns(key))
    return context.column("key", key.shape, identifier=identifier)


def _with(part: Expression, subquery: Subquery, column: Column) -> Expression:
    return substitute(part, lambda node: column if node is subquery else None)
