"""A LEFT JOIN from public rows to private rows, where only private columns are aggregated.

``FROM generate_series(..) AS day LEFT JOIN orders AS o ON o.placed = day GROUP BY day`` keeps days
without orders. The rows of such days belong to no unit, but they do not matter: every aggregate
ignores them, and their groups are answered because every public group is. So the join can be
replaced by an inner join.
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.catalog.functions import RECORDS
from dpsql.ir.expressions import (
    Aggregated,
    Call,
    Case,
    Column,
    Expression,
    Literal,
    columns,
    conjuncts,
)
from dpsql.ir.relations import Filter, Join, Private, Public, Relation
from dpsql.sql.bind.join_rules import join

STRICT = frozenset(name for name, record in RECORDS.items() if record.strict)
"""Functions whose result is NULL when an argument is NULL."""


def as_inner_calendar_join(
    relation: Relation, keys: tuple[Expression, ...], calls: tuple[Aggregated, ...]
) -> Relation:
    """The input of a grouping with an inner join instead of such a LEFT JOIN; else unchanged.

    Claim: a group of both queries has the same results in both.
    Assumes: a function of ``STRICT`` is NULL where an argument is, and aggregates ignore NULL.
    Argument: a public row without a partner has NULL in every column of the private side, so no
        call counts it. The keys are computed from public columns, so the row adds nothing to the
        groups of other rows. Groups of only such rows are left to the planner, which answers every
        public group and refuses ``whole`` joins without public groups. If a condition is false or
        unknown for rows without a partner, they make no groups, and the join is an inner join.
        With any other condition on private columns, private rows would decide which of these rows
        exist. Then the join stays unchanged, and is refused.
    """
    found = _spine(relation)
    if found is None:
        return relation
    own = {f.number for f in found.left.fields}
    absent = {f.number for f in found.right.fields}
    conditions = [c for c in _conditions(relation) if absent & {f.number for f in columns(c)}]
    if any(_fails(c, absent) for c in conditions):
        return _inner(relation, whole=False)
    public = all(c.number in own for key in keys for c in columns(key))
    if (keys and conditions) or not public or not all(_passes_over(call, absent) for call in calls):
        return relation
    return _inner(relation, whole=True)


def _conditions(relation: Relation) -> list[Expression]:
    """The conditions of the filters above the join."""
    if not isinstance(relation, Filter):
        return []
    return [*conjuncts(relation.predicate), *_conditions(relation.input)]


def _spine(relation: Relation) -> Join | None:
    """The join of public rows with private ones, below filters."""
    match relation:
        case Filter(input=below):
            return _spine(below)
        case Join(kind="left", left=left, right=right):
            fits = isinstance(left.privacy, Public) and isinstance(right.privacy, Private)
            return relation if fits else None
        case _:
            return None


def _inner(relation: Relation, *, whole: bool) -> Relation:
    """The relation with an inner join; ``whole``: rows without a partner make groups too."""
    match relation:
        case Filter(input=below):
            changed = _inner(below, whole=whole)
            return replace(relation, input=changed, privacy=changed.privacy)
        case Join():
            # The private side comes first, as in ``arrange_joins``: it finds its own unit.
            made = join("inner", relation.right, relation.left, relation.condition)
            fields, place = relation.fields, relation.span
            return replace(made, fields=fields, span=place, on_unit=relation.on_unit, whole=whole)
        case _:
            raise AssertionError(relation)


def _passes_over(call: Aggregated, absent: set[int]) -> bool:
    """Whether a call ignores rows with NULL in these columns."""
    if call.where is not None and _fails(call.where, absent):
        return True
    if call.distinct and len(call.args) > 1:
        return False
    summed = call.function == "sum" and not call.distinct
    return any(_null(arg, absent) or (summed and _zero(arg, absent)) for arg in call.args)


def _null(value: Expression, absent: set[int]) -> bool:
    """Whether a value is NULL where these columns are."""
    match value:
        case Column():
            return value.number in absent
        case Literal():
            return value.value is None
        case Call(function=function, args=args):
            return function in STRICT and any(_null(arg, absent) for arg in args)
        case Case(whens=whens, otherwise=otherwise):
            return all(_fails(c, absent) for c, _ in whens) and _null(otherwise, absent)
        case _:
            return False


def _zero(value: Expression, absent: set[int]) -> bool:
    """Whether a value is a CASE that falls to ELSE 0 where these columns are NULL."""
    return (
        isinstance(value, Case)
        and all(_fails(c, absent) for c, _ in value.whens)
        and isinstance(value.otherwise, Literal)
        and value.otherwise.value == 0
    )


def _fails(condition: Expression, absent: set[int]) -> bool:
    """Whether a condition is false or unknown where these columns are NULL."""
    match condition:
        case Call(function="and", args=args):
            return any(_fails(arg, absent) for arg in args)
        case Call(function="or", args=args):
            return all(_fails(arg, absent) for arg in args)
        case Call(function="not", args=(Call(function="is_null", args=args),)):
            return all(_null(arg, absent) for arg in args)
        case _:
            return _null(condition, absent)
