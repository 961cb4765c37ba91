"""DP203, DP204: what is summed has bounds.

What: the argument of SUM, AVG, VAR and STDDEV lies between two finite numbers.
Why: without bounds one unit could move the sum by any amount; no finite noise covers that.
Example: ``SELECT SUM(refund) FROM orders``
Instead: ``SELECT SUM(LEAST(GREATEST(refund, 0), 200)) FROM orders``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.checks.rule import frontier, rewritten, short, written
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
    clamp = f"LEAST(GREATEST({text}, 0), 200)"
    if call.function != "sum" and call.args[0].shape.nullable:
        clamp = f"CASE WHEN {text} IS NOT NULL THEN {clamp} END"
    statement = rewritten(bound, span, clamp)
    return f"{statement}\n-- values outside 0..200 count as the nearer limit"
