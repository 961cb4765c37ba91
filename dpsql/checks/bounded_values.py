"""DP203, DP204: what is summed or ranked has bounds.

What: the arguments of SUM, AVG, VAR, STDDEV, COVAR, CORR and REGR lie between two finite numbers;
    that of MEDIAN, PERCENTILE, QUANTILE, MIN and MAX between two finite numbers, dates or times.
Why: without bounds one unit could move the sum by any amount; no finite noise covers that. A
    quantile is chosen among the values of a public range.
Example: ``SELECT SUM(LENGTH(city)) FROM customers``
Instead: ``SELECT SUM(LEAST(GREATEST(LENGTH(city), 0), 200)) FROM customers``
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dpsql.aggregates.mode import few
from dpsql.checks.rule import frontier, rewritten, short, written
from dpsql.diagnostics.refusal import Refusal
from dpsql.sql.bind import Bound
from dpsql.sql.domain import numbers
from dpsql.sql.expressions import Aggregated, Column

WIDEST = 2**400
_SUMMED = ("sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp")
_PAIRED = (
    "covar_pop",
    "covar_samp",
    "corr",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
    "regr_count",
)
_RANKED = ("quantile_cont", "quantile_disc", "min", "max")


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse sums, averages and quantiles of values that are not bounded."""
    for aggregate in frontier(bound):
        for call in aggregate.calls:
            if call.function in _SUMMED:
                yield from _bounded(bound, call)
            elif call.function in _PAIRED:
                for value in call.args:
                    yield from _bounded(bound, replace(call, args=(value,)))
            elif call.function == "mode" and not few(call.args[0].shape):
                yield _not_listed(bound, call)
            elif call.function in _RANKED and _ordered(call):
                yield from _ranked(bound, call)


def _not_listed(bound: Bound, call: Aggregated) -> Refusal:
    text = short(written(bound, call.args[0].span))
    return Refusal(
        "DP203",
        f'"{text}" has no public list of values to choose the commonest from',
        "A value that only one unit has must not be answered because it is there.",
        rewritten(bound, call.span, "COUNT(*)"),
        call.args[0].span,
    )


def _ordered(call: Aggregated) -> bool:
    kind = call.args[0].shape.kind
    return kind.numeric or kind.temporal


def _ranked(bound: Bound, call: Aggregated) -> Iterator[Refusal]:
    value = call.args[0]
    if value.shape.kind.numeric and value.shape.domain.bounded:
        yield from _bounded(bound, call)
    elif not value.shape.domain.bounded:
        text = short(written(bound, value.span))
        yield Refusal(
            "DP203",
            f'"{text}" has no bounds to choose a value from',
            "A value that only one unit has must not be answered because it is there; it is chosen "
            "from a public range.",
            _clamped(bound, call),
            value.span,
        )


def _bounded(bound: Bound, call: Aggregated) -> Iterator[Refusal]:
    value = call.args[0]
    low, high = numbers(value.shape.domain)
    name, text = call.function.upper(), short(written(bound, value.span))
    if low is None or high is None:
        yield Refusal(
            "DP203",
            f'"{text}" has no bounds, so {name}({text}) has no sensitivity',
            "One unit could move this by any amount; no finite noise would cover that.",
            _clamped(bound, call),
            value.span,
        )
    elif max(abs(low), abs(high)) > WIDEST:
        yield Refusal(
            "DP204",
            f'the bounds of "{text}" are too wide',
            "Noise is as wide as the bounds; beyond 1e120 it could not be added exactly.",
            _clamped(bound, call),
            value.span,
        )


def _clamped(bound: Bound, call: Aggregated) -> str:
    """The statement with a clamp that keeps the meaning.

    Where NULL must stay NULL, LEAST alone would not do.
    """
    span = call.args[0].span
    text = written(bound, span)
    if not text:
        return ""
    if call.args[0].shape.kind.temporal:
        return _within(bound, call, text)
    low, high = 0, 200
    clamp = f"LEAST(GREATEST({text}, {low}), {high})"
    if call.function != "sum" and call.args[0].shape.nullable:
        clamp = f"CASE WHEN {text} IS NOT NULL THEN {clamp} END"
    statement = rewritten(bound, span, clamp)
    return f"{statement}\n-- values outside {low}..{high} count as the nearer limit"


def _within(bound: Bound, call: Aggregated, text: str) -> str:
    """For dates and times: only those of a period count."""
    if not isinstance(call.args[0], Column):
        return f"Take it of a column with a range, or of one period: CASE WHEN {text} BETWEEN ..."
    period = "DATE '2020-01-01' AND DATE '2029-12-31'"
    case = f"CASE WHEN {text} BETWEEN {period} THEN {text} END"
    return rewritten(bound, call.args[0].span, case)
