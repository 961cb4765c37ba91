"""An aggregate call as statistics, and its value from what is released of them."""

from __future__ import annotations

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.record import Unanswered
from dpsql.catalog.statistic import Lowered, Rows, Statistic, Total
from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.diagnostics.span import Span
from dpsql.ir.expressions import Aggregated, Column
from dpsql.ir.relations import Aggregate, Private, Project, Relation, Released, Windowed, walk
from dpsql.plan.nodes import Measurement


def lower(aggregate: Aggregate, call: Aggregated) -> Lowered:
    """An aggregate call as statistics."""
    privacy = aggregate.input.privacy
    assert isinstance(privacy, Private)
    make = AGGREGATES[call.function].lower
    assert not isinstance(make, Unanswered), "checks.known_aggregates lets no other pass"
    return make(call, privacy)


def check_timing(relation: Relation) -> None:
    """Refuse aggregates of private rows whose record does not say that strict timing holds for them."""
    for part in walk(relation):
        if not isinstance(part, Aggregate | Windowed) or not isinstance(
            part.input.privacy, Private
        ):
            continue
        calls = part.calls if isinstance(part, Aggregate) else part.windows
        for call in calls:
            record = AGGREGATES.get(call.function)  # None: a window function that is no aggregate
            if record is not None and not record.strict_timing:
                raise Refused(_untimed(call.function, call.span))


def _untimed(function: str, span: Span | None) -> Refusal:
    return Refusal(
        "DP306",
        f"how long {function.upper()} takes could tell of one unit's rows",
        "The policy asks for strict timing, and nobody has shown that it holds for this aggregate.",
        "AVG, SUM, COUNT, MIN, MAX and MEDIAN are answered under strict timing.",
        span,
    )


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
