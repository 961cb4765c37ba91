"""DP110: only aggregates with a private form are answered over private rows.

What: each aggregate at the frontier is in the registry; DISTINCT only counts units.
Why: the largest value, or the number of different values, can be one person's doing.
Example: ``SELECT MAX(age) FROM customers``
Instead: ``SELECT AVG(age) FROM customers``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.aggregates.count import counts_units
from dpsql.aggregates.registry import AGGREGATES
from dpsql.checks.rule import frontier, rewritten, written
from dpsql.diagnostics.refusal import Refusal
from dpsql.sql.bind import Bound
from dpsql.sql.expressions import Aggregated, Column
from dpsql.sql.relations import Private


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse aggregates without a private form, and DISTINCT of other things than the unit."""
    for aggregate in frontier(bound):
        privacy = aggregate.input.privacy
        assert isinstance(privacy, Private)
        for call in aggregate.calls:
            if call.function not in AGGREGATES:
                yield _no_form(bound, call)
            elif call.distinct and not _distinct_units(call, privacy):
                names = {f.number: f.name for f in aggregate.input.fields}
                unit = ", ".join(
                    next((names[n] for n in sorted(c) if n in names), privacy.unit)
                    for c in privacy.key
                )
                yield _distinct(bound, call, unit)


def _distinct_units(call: Aggregated, privacy: Private) -> bool:
    return call.function == "count" and counts_units(call, privacy)


def _no_form(bound: Bound, call: Aggregated) -> Refusal:
    name = call.function.upper()
    inside = written(bound, call.args[0].span) if call.args else "*"
    numeric = bool(call.args) and call.args[0].shape.kind.numeric
    replacement = f"AVG({inside})" if numeric else "COUNT(*)"
    return Refusal(
        "DP110",
        f"{name} is not answered: an extreme value belongs to one unit",
        "Publishing an extreme publishes the record that holds it; its sensitivity is the "
        "whole range of the column.",
        rewritten(bound, call.span, replacement),
        call.span,
    )


def _distinct(bound: Bound, call: Aggregated, unit: str) -> Refusal:
    what = ", ".join(a.name for a in call.args if isinstance(a, Column)) or "this"
    return Refusal(
        "DP110",
        f"{call.function.upper()}(DISTINCT ...) of {what} has no private form here",
        "Whether a value counts depends on whether others have it too, so that one unit's rows "
        "change more than their own share. Units can be counted.",
        rewritten(bound, call.span, f"COUNT(DISTINCT {unit})" if unit else "COUNT(*)"),
        call.span,
    )
