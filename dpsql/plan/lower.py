"""An aggregate call as statistics, and the call's value computed from the released statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.build import call as apply
from dpsql.catalog.build import not_null, real
from dpsql.catalog.record import Unanswered
from dpsql.catalog.statistic import Lowered, Rows, Statistic, Total
from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.diagnostics.span import Span
from dpsql.ir.expressions import Aggregated, Column, Expression
from dpsql.ir.relations import (
    Aggregate,
    Private,
    Project,
    Relation,
    Released,
    Windowed,
    walk_relations,
)
from dpsql.plan.nodes import Measurement
from dpsql.policy.types import Kind

LARGEST = 2**32
"""Sums of larger values are integers that doubles cannot hold exactly. They are not centred."""


def lower(aggregate: Aggregate, call: Aggregated) -> Lowered:
    """An aggregate call as statistics."""
    privacy = aggregate.input.privacy
    assert isinstance(privacy, Private)
    make = AGGREGATES[call.function].lower
    assert not isinstance(make, Unanswered), "checks.known_aggregates lets no other pass"
    return make(call, privacy)


def check_timing(relation: Relation) -> None:
    """Refuse aggregates of private rows whose record does not say that strict timing holds."""
    for part in walk_relations(relation):
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
        f"how long {function.upper()} takes could reveal something about one unit's rows",
        "The policy asks for strict timing, which has not been shown to hold for this aggregate.",
        "AVG, SUM, COUNT, MIN, MAX and MEDIAN are answered under strict timing.",
        span,
    )


def centre_sums(lowered: Sequence[Lowered]) -> list[Lowered]:
    """The aggregates of one GROUP BY, with sums centred if a count of their rows is measured too.

    A sum is then a centred total plus the centre times the count.

    Claim: the sum errs no more than if it were measured by itself, at the price of the same query.
    Assumes: statistics of one query get equal shares of its budget (``price.price``).
    Argument: a row whose value is in a range of half width h around m changes the total by at most
        |m| + h. It changes the centred total by at most h, and the count, which is measured anyway,
        by 1. With equal shares of the budget the errors of h and |m| add in squares, and sqrt(h**2
        + m**2) <= h + |m|. A mean of the same rows uses both numbers as well, so that SUM, COUNT
        and AVG are two measurements and not three.

    The centred total and the count of such a query are stored, and the sum is computed from both.
    The query's text and the policy alone decide which form is used.
    """
    counts = {s for low in lowered for s in low.statistics if isinstance(s, Rows)}
    return [_centred(low, counts) for low in lowered]


def _centred(low: Lowered, counts: set[Rows]) -> Lowered:
    [total, *rest] = low.statistics or (None,)
    if rest or not isinstance(total, Total) or total.cap is not None:
        return low  # only a SUM is lowered to one total alone
    middle = (total.low + total.high) / 2
    count = Rows(not_null(total.value, total.where))
    if count not in counts or max(abs(total.low), abs(total.high)) > LARGEST:
        return low

    def finish(columns: tuple[Column, ...]) -> Expression:
        offsets, rows = columns
        found: Expression = offsets
        if middle != 0:
            found = apply("add", apply("multiply", real(middle), rows), offsets)
        if not total.whole:
            return found
        return apply("cast", apply("round", found), option=Kind.INTEGER.value)

    return Lowered((replace(total, centre=middle, whole=False), count), finish)


def adds_up(statistic: Statistic) -> bool:
    """Whether the statistic of a coarser group is the sum of those of its finer groups."""
    return isinstance(statistic, Rows | Total) and statistic.cap is None


def finish(
    aggregate: Aggregate, source: Relation, keys: tuple[Column, ...], measurement: Measurement,
    lowered: list[Lowered],
) -> Project:  # fmt: skip
    """The aggregate's columns, computed from the released columns of ``source``."""
    noisy = dict(zip(measurement.statistics, measurement.columns, strict=True))
    values = tuple(low.finish(tuple(noisy[s] for s in low.statistics)) for low in lowered)
    return Project(source, (*keys, *values), aggregate.fields, Released(), aggregate.span)
