"""DP110: only aggregates with a private form are answered over private rows.

What: each aggregate at the frontier is in the registry; MIN, MAX and PERCENTILE_DISC are of
    numbers, dates or times, or of a public list of values; DISTINCT counts, and nothing else.
Why: the first of all names can be one person's; so can the last of all salaries in a sum of
    different ones.
Example: ``SELECT MAX(city) FROM customers``
Instead: ``SELECT city, COUNT(*) FROM customers GROUP BY city``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.aggregates.count import counts_units
from dpsql.aggregates.mode import few
from dpsql.checks.rule import frontier, rewritten, visible, written
from dpsql.diagnostics.refusal import Refusal
from dpsql.sql.bind import Bound
from dpsql.sql.expressions import Aggregated, Column
from dpsql.sql.relations import Private


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse aggregates without a private form, and DISTINCT in others than COUNT."""
    for aggregate in frontier(bound):
        privacy = aggregate.input.privacy
        assert isinstance(privacy, Private)
        for call in aggregate.calls:
            if call.function in ("min", "max", "quantile_disc"):
                if not _ranked(call):
                    yield _no_order(bound, call)
            elif call.function in ("arg_max", "arg_min"):
                yield _no_row(bound, call)
            elif call.distinct and not _counted(call, privacy):
                unit = ", ".join(visible(aggregate.input, component) for component in privacy.key)
                yield _distinct(bound, call, unit)


def _ranked(call: Aggregated) -> bool:
    shape = call.args[0].shape
    return shape.kind.numeric or shape.kind.temporal or few(shape)


def _no_order(bound: Bound, call: Aggregated) -> Refusal:
    name, kind = call.function.upper(), call.args[0].shape.kind.value
    return Refusal(
        "DP110",
        f"{name} of {kind} without public values is not answered: it would be one unit's value",
        "Extremes are chosen within a public range, or from a public list: what the policy gives "
        "as `range` or `values`. There is none here, and the value itself is somebody's.",
        rewritten(bound, call.span, "COUNT(*)"),
        call.span,
    )


def _counted(call: Aggregated, privacy: Private) -> bool:
    """Units, or the values of one expression."""
    return call.function == "count" and (len(call.args) == 1 or counts_units(call, privacy))


def _no_row(bound: Bound, call: Aggregated) -> Refusal:
    name = call.function.upper()
    return Refusal(
        "DP110",
        f"{name} is not answered: the row that it finds belongs to one unit",
        "The value beside an extreme is that unit's own. Over groups it is answered: "
        f"{name}(key, n) of a subquery that counts, or sums, by key.",
        rewritten(bound, call.span, "COUNT(*)"),
        call.span,
    )


def _distinct(bound: Bound, call: Aggregated, unit: str) -> Refusal:
    name = call.function.upper()
    what = ", ".join(a.name for a in call.args if isinstance(a, Column)) or "this"
    if call.function == "count":
        first = written(bound, call.args[0].span)
        replacement = f"COUNT(DISTINCT {unit if unit.strip(', ') else first})"
    else:
        replacement = f"{name}({written(bound, call.args[0].span)})"
    return Refusal(
        "DP110",
        f"{name}(DISTINCT ...) of {what} has no private form here",
        "Whether a value counts depends on whether others have it too, so that one unit's rows "
        "change more than their own share. Units and values can be counted.",
        rewritten(bound, call.span, replacement),
        call.span,
    )
