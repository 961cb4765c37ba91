"""Differential privacy clauses and named arguments, applied to their SELECT and aggregate.

A clause is for the one measurement of its SELECT, and bounds are for an aggregate over private
rows. Without such a measurement or aggregate they would have no effect, so they are refused.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from dpsql.catalog.aggregates import names_where
from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.diagnostics.span import Span
from dpsql.ir.domain import Domain, interval, members
from dpsql.ir.expressions import Aggregated, Column, Shape
from dpsql.ir.privacy_clause import UNIT, Bounds, Clause, Ends, Terms
from dpsql.ir.relations import (
    Aggregate,
    Distinct,
    Filter,
    Limit,
    Private,
    Project,
    Relation,
    Released,
    Sort,
    Windowed,
)
from dpsql.policy.types import Kind, Scalar
from dpsql.sql.bind.join_rules import equalities, known_conditions
from dpsql.sql.bind.scope import Scope, spell_name
from dpsql.sql.clauses import bounds_of, clause_of

ROW_BOUNDED = names_where(lambda record: record.row_bounds)
GROUP_BOUNDED = names_where(lambda record: record.group_bounds)
"""The aggregates that take ``contribution_bounds_per_row``, and those that take ``_per_group``."""


def with_terms(select: exp.Select, relation: Relation, below: Relation, scope: Scope) -> Relation:
    """The relation of a SELECT with the terms of its clause on the aggregate over ``below``."""
    clause = clause_of(select)
    if clause is None or (isinstance(relation, Limit) and relation.count == 0):
        return relation
    _check_unit(clause, below, scope)
    found = _stamped(relation, clause.terms, below)
    if found is None:
        raise Refused(_idle(clause, below))
    return found


def _stamped(relation: Relation, terms: Terms, below: Relation) -> Relation | None:
    """The relation with the terms on the SELECT's own aggregate; None if that is not noised."""
    if relation is below:
        return None
    if isinstance(relation, Aggregate):
        state = relation.input.privacy
        measured = isinstance(state, Private) and isinstance(relation.privacy, Released)
        if measured:
            _check_groups(relation, terms)
        averages = tuple(replace(c, averaged=c.function == "avg") for c in relation.calls)
        return replace(relation, terms=terms, calls=averages) if measured else None
    assert isinstance(relation, Limit | Sort | Project | Distinct | Windowed | Filter)
    inner = _stamped(relation.input, terms, below)
    return None if inner is None else replace(relation, input=inner)


def _check_unit(clause: Clause, below: Relation, scope: Scope) -> None:
    """Refuse a clause that names another column than the unit's key."""
    state = below.privacy
    if not clause.unit or not isinstance(state, Private):
        return
    names = [exp.to_identifier(name, quoted=quoted) for name, quoted in clause.unit]
    node = exp.column(names[-1], table=names[0] if len(names) == 2 else None)
    known = equalities(known_conditions(below))
    parts = [known.closure(part) for part in state.key]
    if len(parts) == 1 and scope.knows(node):
        found = scope.resolve(node)
        if isinstance(found, Column) and found.number in parts[0]:
            return
    names_of_key = [spell_name(f.name) for part in parts for f in scope.fields if f.number in part]
    raise Refused(_another_unit(clause, state.unit, names_of_key[:1] if len(parts) == 1 else []))


def _check_groups(aggregate: Aggregate, terms: Terms) -> None:
    if terms.least is not None and not aggregate.keys:
        raise Refused(
            Refusal(
                "DP406",
                "min_privacy_units_per_group is about groups, and there are none",
                "Without GROUP BY there is one answer, for however many units.",
                "Leave it out, or add GROUP BY.",
                terms.span,
            )
        )


def _idle(clause: Clause, below: Relation) -> Refusal:
    private = isinstance(below.privacy, Private)
    return Refusal(
        "DP406",
        "WITH DIFFERENTIAL_PRIVACY has no effect on this SELECT, which adds no noise",
        "This SELECT does not aggregate over rows of several units, so no noise is added to its "
        "result."
        if private
        else "This SELECT reads only public or already noised values, which are answered "
        "exactly and for free.",
        "Write the clause in the SELECT that aggregates over private rows."
        if private
        else "Leave the clause out.",
        clause.terms.span,
    )


def _another_unit(clause: Clause, unit: str, names: list[str]) -> Refusal:
    known = (
        f"{UNIT} = {names[0]}"
        if names
        else f"Leave {UNIT} out: dpsql finds the unit of each row itself."
    )
    return Refusal(
        "DP406",
        f"this column is not the key of the protected unit, {unit}",
        "Who is protected is the owner's decision; a query cannot choose another unit.",
        known,
        clause.unit_span,
    )


def clamp_call(call: Aggregated, node: exp.Expr) -> Aggregated:
    """The call with the bounds of its named arguments; the value gets the clamped range.

    Claim: narrowing the range of the argument's shape clamps the value.
    Assumes: each lowering clamps values to the range of their shape (``catalog.record``).
    Argument: no step between here and the lowering changes the range of the value.
    """
    inner = node.this if isinstance(node, exp.Filter) else node
    inner = inner.this if isinstance(inner, exp.WithinGroup) else inner
    bounds = bounds_of(inner)
    if bounds is None:
        return call
    if bounds.row is not None:
        call = _row_bounded(call, bounds.row, bounds)
    if bounds.group is not None:
        if call.function not in GROUP_BOUNDED or call.distinct:
            raise _misused(call, "contribution_bounds_per_group", bounds.span)
        summed = call.args[0].shape.kind if call.function == "sum" else Kind.INTEGER
        if call.function != "avg":
            _check_whole(bounds.group, summed, bounds)
    return replace(call, bounds=bounds)


def _row_bounded(call: Aggregated, ends: Ends, bounds: Bounds) -> Aggregated:
    if call.function not in ROW_BOUNDED or call.distinct:
        raise _misused(call, "contribution_bounds_per_row", bounds.span)
    shape = call.args[0].shape
    if not shape.kind.numeric:
        raise _misused(call, "contribution_bounds_per_row", bounds.span, f" of {shape.kind.value}")
    whole = shape.kind is Kind.INTEGER or shape.domain.integral
    _check_whole(ends, Kind.INTEGER if whole else shape.kind, bounds)
    value = replace(call.args[0], shape=replace(shape, domain=_clamped(shape, ends)))
    return replace(call, args=(value,))


def _clamped(shape: Shape, ends: Ends) -> Domain:
    """The domain of the clamped value."""
    low, high = ends

    def inside(value: Scalar | None, otherwise: Fraction) -> Scalar:
        assert value is None or isinstance(value, int | Fraction)
        near = otherwise if value is None else min(max(Fraction(value), low), high)
        return int(near) if shape.kind is Kind.INTEGER else near

    domain = shape.domain
    if domain.members is not None:
        return members(sorted({inside(v, low) for v in domain.members}))
    return interval(inside(domain.low, low), inside(domain.high, high), integral=domain.integral)


def _check_whole(ends: Ends, kind: Kind, bounds: Bounds) -> None:
    if kind is Kind.INTEGER and any(end.denominator != 1 for end in ends):
        raise Refused(
            Refusal(
                "DP406",
                "the bounds of whole numbers must be whole numbers",
                "A clamped value must stay a whole number, because only whole numbers are added "
                "exactly.",
                f"({int(ends[0])}, {int(ends[1])})",
                bounds.span,
            )
        )


def _misused(call: Aggregated, name: str, span: Span | None, what: str = "") -> Refused:
    """The refusal of a named argument that the aggregate does not take."""
    takers = ROW_BOUNDED if name.endswith("row") else GROUP_BOUNDED
    of = " DISTINCT" if call.distinct else what
    return Refused(
        Refusal(
            "DP406",
            f"{call.function.upper()}{of} does not take {name}",
            "A bound that cannot be applied must not be ignored silently.",
            f"It is taken by these aggregates of numbers: {', '.join(t.upper() for t in takers)}.",
            span,
        )
    )
