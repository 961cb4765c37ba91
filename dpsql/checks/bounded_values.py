"""DP203, DP204: what is summed or ranked has bounds.

What: the arguments of aggregates that add values (SUM, AVG, VAR, STDDEV, COVAR, CORR, REGR) lie
    between two finite numbers, those of GEOMETRIC_MEAN between two positive ones;
    that of MEDIAN, PERCENTILE, QUANTILE, MIN and MAX between two finite numbers, dates or times.
Why: without bounds one unit could move the sum by any amount; no finite noise covers that. A
    quantile is chosen among the values of a public range.
Example: ``SELECT SUM(LENGTH(city)) FROM customers``
Instead: ``SELECT SUM(LEAST(GREATEST(LENGTH(city), 0), 200)) FROM customers``
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, floor
from typing import assert_never

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.aggregates.mode import few
from dpsql.catalog.record import Needs
from dpsql.checks.rule import frontier, short, source_text
from dpsql.diagnostics.edit import Edit
from dpsql.diagnostics.refusal import Refusal
from dpsql.ir.domain import numbers
from dpsql.ir.expressions import Aggregated, Expression
from dpsql.sql.bind import Bound

WIDEST = 2**400
_BOUND = "Clamp the value, LEAST(GREATEST(x, 0), 100), or ask the data owner to declare a `range`."


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse sums, averages and quantiles of values that are not bounded."""
    for aggregate in frontier(bound):
        for call in aggregate.calls:
            yield from _refusals(bound, call)


def _refusals(bound: Bound, call: Aggregated) -> Iterator[Refusal]:
    needs = AGGREGATES[call.function].needs
    match needs:
        case Needs.NOTHING:
            pass
        case Needs.BOUNDS:
            for value in call.args:
                yield from _bounded(bound, replace(call, args=(value,)))
        case Needs.POSITIVE_BOUNDS:
            yield from _positive(bound, call)
        case Needs.RANGE_OR_LIST:
            if _ordered(call):
                yield from _ranked(bound, call)
        case Needs.LIST:
            if not few(call.args[0].shape):
                yield _not_listed(bound, call)
        case _:
            assert_never(needs)


def _not_listed(bound: Bound, call: Aggregated) -> Refusal:
    text = short(source_text(bound, call.args[0].span))
    return Refusal(
        "DP203",
        f'MODE needs a public list of values, and "{text}" has none',
        "The answer is chosen from a public list. So a value that only one unit has cannot "
        "appear because of that unit.",
        "Give the policy a list of `values` for the column, or count each of its values.",
        call.args[0].span,
        _counts(bound, call),
    )


def _counts(bound: Bound, call: Aggregated) -> tuple[Edit, ...]:
    """How many rows each value has."""
    text, count = source_text(bound, call.args[0].span), Edit("replace", call.span, "COUNT(*)")
    return (Edit("values", call.span, text), count) if text else (count,)


def _ordered(call: Aggregated) -> bool:
    kind = call.args[0].shape.kind
    return kind.numeric or kind.temporal


def _ranked(bound: Bound, call: Aggregated) -> Iterator[Refusal]:
    value = call.args[0]
    if value.shape.kind.numeric and value.shape.domain.bounded:
        yield from _bounded(bound, call)
    elif not value.shape.domain.bounded:
        text = short(source_text(bound, value.span))
        yield Refusal(
            "DP203",
            f'"{text}" has no bounds, and the answer must be chosen within bounds',
            "The answer is chosen within a public range. So a value that only one unit has "
            "cannot appear because of that unit.",
            _BOUND,
            value.span,
            _clamped(bound, call),
        )


def _bounded(bound: Bound, call: Aggregated) -> Iterator[Refusal]:
    value = call.args[0]
    low, high = numbers(value.shape.domain)
    name, text = call.function.upper(), short(source_text(bound, value.span))
    if low is None or high is None:
        yield Refusal(
            "DP203",
            f'"{text}" has no bounds, so the sensitivity of {name}({text}) is unlimited',
            "One unit could change the result by any amount, and no finite noise would hide that.",
            _BOUND,
            value.span,
            _clamped(bound, call),
        )
    elif max(abs(low), abs(high)) > WIDEST:
        yield Refusal(
            "DP204",
            f'the bounds of "{text}" are too wide',
            "The noise grows with the bounds. Beyond 1e120 it could not be added exactly.",
            "Clamp the value: LEAST(GREATEST(x, 0), 100).",
            value.span,
            _clamped(bound, call),
        )


def _positive(bound: Bound, call: Aggregated) -> Iterator[Refusal]:
    value = call.args[0]
    low, high = numbers(value.shape.domain)
    if low is not None and high is not None and low > 0:
        yield from _bounded(bound, call)
        return
    name, text = call.function.upper(), source_text(bound, value.span)
    most = MOST_CLAMPED if high is None else min(MOST_CLAMPED, max(1, ceil(high)))
    clamp = f"CASE WHEN {text} > 0 THEN LEAST(GREATEST({text}, 1), {most}) END"
    note = (
        f"only positive values count, clamped to 1..{most}: replace these limits with those that "
        "you know"
    )
    yield Refusal(
        "DP203",
        f'"{short(text)}" has no bounds above 0, so the sensitivity of {name} is unlimited',
        "The logarithm of a value near 0 has no lower limit, so one unit could change the "
        "result by any amount.",
        "Clamp the value above 0, LEAST(GREATEST(x, 1), 100), or ask the data owner to declare a "
        "`range` above 0.",
        value.span,
        (Edit("replace", value.span, clamp, note),) if text else (),
    )


def _clamped(bound: Bound, call: Aggregated) -> tuple[Edit, ...]:
    """Suggested clamps that keep the meaning of the query.

    They use the known ends of the range; a missing end is as far from zero as the other one. Where
    NULL must stay NULL, a CASE is needed, since LEAST ignores NULL.
    """
    value = call.args[0]
    text = source_text(bound, value.span)
    if not text:
        return ()
    if value.shape.kind.temporal:
        period = "DATE '2020-01-01' AND DATE '2029-12-31'"
        note = "only values of this period count: replace it with the period that you know"
        return (
            Edit("replace", value.span, f"CASE WHEN {text} BETWEEN {period} THEN {text} END", note),
        )
    low, high = _ends(value)
    clamp = f"LEAST(GREATEST({text}, {low}), {high})"
    if call.function != "sum" and value.shape.nullable:
        clamp = f"CASE WHEN {text} IS NOT NULL THEN {clamp} END"
    note = (
        f"values outside {low}..{high} count as the nearer limit: replace these limits with those "
        "that you know"
    )
    return (Edit("replace", value.span, clamp, note),)


def _ends(value: Expression) -> tuple[int, int]:
    """Limits for a clamp; the lower one is 0 only where no value is below 0."""
    low, high = numbers(value.shape.domain)
    most = MOST_CLAMPED if high is None or high > MOST_CLAMPED else max(1, ceil(high))
    if low is None or low < 0:
        return -most, most
    return floor(low) if 2 * low <= most else 0, most


MOST_CLAMPED = 200
"""How far from zero a suggested clamp reaches; the analyst knows better limits."""
