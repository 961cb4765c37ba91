"""Sums around a centre that was found privately, near the mean of the values.

A sum beside the number of its rows may be taken around any centre: ``S = C * n + T``, where T is
the sum of the distances from C. The middle of the declared range is often far from all values. Then
each unit adds much to T, all with one sign. Around a centre near the mean, the distances of a unit
cancel, and a tighter bound is enough.

Claim: with a new centre, the output is the same function of sums and numbers of rows as before.
Assumes: the centre was released, and the number of rows is released beside the sum.
Argument: ``T = T' + (C' - C) n`` for the sum T' around C'. The column of T is computed from the
    released columns of T' and n in this way, wherever it is read. So intervals, which are computed
    from the noise of released columns, know that T and n share noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.catalog.build import call as apply
from dpsql.catalog.build import not_null, real
from dpsql.catalog.statistic import Rows, Total
from dpsql.ir.expressions import Column, Expression
from dpsql.ir.relations import (
    Project,
    Relation,
    Released,
    Stored,
    inputs,
    walk_relations,
    with_inputs,
)
from dpsql.plan.nodes import HiddenMean, Measurement, Plan

Centres = Mapping[tuple[str, int], Fraction]
"""New centres, by the name of the measurement and the position of the sum."""


@dataclass(frozen=True, slots=True)
class _Moved:
    """A sum around another centre: its old column, and how to compute it."""

    column: Column
    raw: Column
    rows: Column
    by: Fraction

    @property
    def value(self) -> Expression:
        return apply("add", self.raw, apply("multiply", real(self.by), self.rows))


def centred_sums(measurement: Measurement) -> Iterator[tuple[int, int]]:
    """The positions of sums that may have another centre, each with that of its number of rows.

    >>> from types import SimpleNamespace
    >>> from dpsql.ir.expressions import Shape
    >>> from dpsql.policy.types import Kind
    >>> paid = Column(1, "paid", Shape(Kind.DOUBLE, nullable=False))
    >>> total = Total(paid, Fraction(0), Fraction(500))
    >>> list(centred_sums(SimpleNamespace(statistics=(Rows(), total))))
    [(1, 0)]
    """
    statistics = measurement.statistics
    for i, total in enumerate(statistics):
        if not isinstance(total, Total) or total.cap is not None or total.whole:
            continue
        rows = Rows(not_null(total.value, total.where))
        if rows in statistics and total.low < total.high:
            yield i, statistics.index(rows)


def with_centres(plan: Plan, centres: Centres) -> Plan:
    """The plan in which sums have new centres, and the output computes the old ones from them.

    Questions with lookups have no searches, so the output alone reads what is measured.
    """
    assert not plan.lookups, "rows that depend on released numbers are not searched"
    numbers = _unused_numbers(plan)
    measurements, moved = list[Measurement](), dict[str, list[_Moved]]()
    for measurement in plan.measurements:
        found, changed = _moved(measurement, centres, numbers)
        measurements.append(found)
        moved[measurement.name] = changed
    output = _computed(plan.output, moved)
    return replace(plan, measurements=tuple(measurements), output=output)


def _unused_numbers(plan: Plan) -> Iterator[int]:
    used = [f.number for part in walk_relations(plan.output) for f in part.fields]
    used += [c.number for m in plan.measurements for c in m.columns]
    return iter(range(max(used) + 1, 2**31))


def _moved(
    measurement: Measurement, centres: Centres, numbers: Iterator[int]
) -> tuple[Measurement, list[_Moved]]:
    """The measurement with its new centres, and the columns that must be computed."""
    statistics, columns = list(measurement.statistics), list(measurement.columns)
    found, hidden = list[_Moved](), measurement.hidden
    for i, j in centred_sums(measurement):
        total, centre = statistics[i], centres.get((measurement.name, i))
        if centre is None:
            continue
        assert isinstance(total, Total)
        by = centre - total.centre
        statistics[i] = replace(total, centre=centre)
        raw = replace(columns[i], number=next(numbers))
        found.append(_Moved(columns[i], raw, columns[j], by))
        columns[i] = raw
        hidden = tuple(_wider(h, i, by) for h in hidden)  # type: ignore[misc]
    changed = replace(
        measurement, statistics=tuple(statistics), columns=tuple(columns), hidden=hidden
    )
    return changed, found


def _wider(hidden: object, position: int, by: Fraction) -> object:
    """What decides whether a mean is hidden: its sum has noise of the number of rows too."""
    if isinstance(hidden, HiddenMean) and hidden.total == position:
        return replace(hidden, half=hidden.half + abs(by))
    return hidden


def _computed(relation: Relation, moved: Mapping[str, list[_Moved]]) -> Relation:
    """The relation over released tables, with old columns computed from new ones."""
    if not isinstance(relation, Stored):
        below = tuple(_computed(r, moved) for r in inputs(relation))
        return with_inputs(relation, below)
    changes = {m.column.number: m for m in moved.get(relation.name, ())}
    if not changes:
        return relation
    raw = tuple(changes[f.number].raw if f.number in changes else f for f in relation.fields)
    values = tuple(changes[f.number].value if f.number in changes else f for f in relation.fields)
    return Project(replace(relation, fields=raw), values, relation.fields, Released())
