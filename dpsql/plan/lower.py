"""An aggregate call as statistics, and its value from what is released of them."""

from __future__ import annotations

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.record import Unanswered
from dpsql.catalog.statistic import Lowered, Rows, Statistic, Total
from dpsql.plan.nodes import Measurement
from dpsql.sql.expressions import Aggregated, Column
from dpsql.sql.relations import Aggregate, Private, Project, Relation, Released


def lower(aggregate: Aggregate, call: Aggregated) -> Lowered:
    """An aggregate call as statistics."""
    privacy = aggregate.input.privacy
    assert isinstance(privacy, Private)
    make = AGGREGATES[call.function].lower
    assert not isinstance(make, Unanswered), "checks.known_aggregates lets no other pass"
    return make(call, privacy)


def adds_up(statistic: Statistic) -> bool:
    """Whether the number of a coarser group is the sum of its finer ones."""
    return isinstance(statistic, Rows | Total) and statistic.cap is None


def finish(
    aggregate: Aggregate, source: Relation, keys: tuple[Column, ...], measurement: Measurement,
    lowered: list[Lowered],
) -> Project:  # fmt: skip
    """The aggregate's columns, computed from the released columns of ``source``."""
    noisy = dict(zip(measurement.statistics, measurement.columns, strict=True))
    values = tuple(low.finish(tuple(noisy[s] for s in low.statistics)) for low in lowered)
    return Project(source, (*keys, *values), aggregate.fields, Released(), aggregate.span)
