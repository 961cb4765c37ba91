"""DP203, DP204: what is summed has bounds.

What: the argument of SUM, AVG, VAR and STDDEV lies between two finite numbers.
Why: without bounds one unit could move the sum by any amount; no finite noise covers that.
Example: ``SELECT SUM(refund) FROM orders``
Instead: ``SELECT SUM(LEAST(GREATEST(refund, 0), 200)) FROM orders``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.checks.rule import frontier, rewritten, written
from dpsql.diagnostics.refusal import Refusal
from dpsql.sql.bind import Bound
from dpsql.sql.domain import numbers
from dpsql.sql.expressions import Aggregated

WIDEST = 2**400
_SUMMED = ("sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp")


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse sums and averages of values that are not bounded."""
    for aggregate in frontier(bound):
        for call in aggregate.calls:
            if call.function in _SUMMED:
                yield from _bounded(bound, call)


def _bounded(bound: Bound, call: Aggregated) -> Iterator[Refusal]:
    value = call.args[0]
    low, high = numbers(value.shape.domain)
    name, text = call.function.upper(), written(bound, value.span)
    if low is None or high is None:
        yield Refusal(
            "DP203",
            f'"{text}" has no bounds, so {name}({text}) has no sensitivity',
            "One unit could move this by any amount; no finite noise would cover that.",
            rewritten(bound, value.span, _clamped(call, text)),
            value.span,
        )
    elif max(abs(low), abs(high)) > WIDEST:
        yield Refusal(
            "DP204",
            f'the bounds of "{text}" are too wide',
            "Noise is as wide as the bounds; beyond 1e120 it could not be added exactly.",
            rewritten(bound, value.span, _clamped(call, text)),
            value.span,
        )


def _clamped(call: Aggregated, text: str) -> str:
    """The clamp that keeps the meaning: where NULL must stay NULL, LEAST alone would not do."""
    clamp = f"LEAST(GREATEST({text}, 0), 200)"
    if call.function == "sum" or not call.args[0].shape.nullable:
        return clamp
    return f"CASE WHEN {text} IS NOT NULL THEN {clamp} END"
