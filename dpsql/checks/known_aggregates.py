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

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.aggregates.mode import few
from dpsql.catalog.record import Distinct, Needs, Unanswered
from dpsql.checks.rule import frontier, short, source_text, visible
from dpsql.diagnostics.edit import Edit
from dpsql.diagnostics.refusal import Refusal
from dpsql.ir.expressions import Aggregated, Column
from dpsql.ir.relations import Aggregate, Private, Project
from dpsql.sql.bind import Bound


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse aggregates without a private form, and DISTINCT where only COUNT may have it."""
    for aggregate in frontier(bound):
        for call in aggregate.calls:
            record = AGGREGATES[call.function]
            if record.needs is Needs.RANGE_OR_LIST and not _ranked(call):
                yield _no_order(bound, call)
            elif isinstance(record.lower, Unanswered):
                yield _no_form(bound, aggregate, call, record.lower)
            elif call.distinct and record.distinct is Distinct.REFUSED:
                yield _distinct(bound, aggregate, call)


def _ranked(call: Aggregated) -> bool:
    shape = call.args[0].shape
    return shape.kind.numeric or shape.kind.temporal or few(shape)


def _no_order(bound: Bound, call: Aggregated) -> Refusal:
    name, kind = call.function.upper(), call.args[0].shape.kind.value
    return Refusal(
        "DP110",
        f"{name} of {kind} without public values is not answered: it would be one unit's value",
        "An extreme is chosen from what the policy declares as `range` or `values`. This value "
        "has neither, and the extreme itself would be one unit's value.",
        "Count each value, or ask the data owner to declare `values` or a `range`.",
        call.span,
        (*_values(bound, call, 0), Edit("replace", call.span, "COUNT(*)")),
    )


def _values(bound: Bound, call: Aggregated, place: int) -> tuple[Edit, ...]:
    """How many rows each value has."""
    text = source_text(bound, call.args[place].span)
    return (Edit("values", call.span, text),) if text else ()


def _no_form(bound: Bound, aggregate: Aggregate, call: Aggregated, reason: Unanswered) -> Refusal:
    return Refusal(
        "DP110",
        reason.headline,
        reason.why,
        reason.instead,
        call.span,
        (
            *_first_group(bound, aggregate, call),
            *_values(bound, call, 0),
            Edit("replace", call.span, "COUNT(*)"),
        ),
    )


_ENDS = {"arg_max": ("MAX", "DESC"), "arg_min": ("MIN", "ASC")}


def _first_group(bound: Bound, aggregate: Aggregate, call: Aggregated) -> tuple[Edit, ...]:
    """Suggests the group with the highest or lowest value, for an ARG_MAX or ARG_MIN alone."""
    ends, top = _ENDS.get(call.function), bound.relation
    alone = isinstance(top, Project) and top.input is aggregate and top.fields == bound.columns
    one = len(aggregate.calls) == 1 and not aggregate.keys and call.where is None
    if ends is None or not alone or not one:
        return ()
    (value, by), (extreme, way) = call.args, ends
    if not few(value.shape) or not by.shape.domain.bounded:
        return ()
    order = f"{extreme}({source_text(bound, by.span)}) {way}"
    return (Edit("first_group", call.span, f"{source_text(bound, value.span)}\n{order}"),)


def _distinct(bound: Bound, aggregate: Aggregate, call: Aggregated) -> Refusal:
    name, value = call.function.upper(), source_text(bound, call.args[0].span)
    what = ", ".join(a.name for a in call.args if isinstance(a, Column)) or "this"
    privacy = aggregate.input.privacy
    assert isinstance(privacy, Private)
    key = [visible(aggregate.input, component) for component in privacy.key]
    unit = ", ".join(key) if key and all(key) else "the unit"
    return Refusal(
        "DP110",
        f"{name}(DISTINCT ...) of {what} is not answered",
        "Whether a value counts depends on the values of other units, so one unit's rows could "
        f"change more than their own share. Units and values can be counted. {name} can be "
        f"taken over the different values of each unit, in a subquery: SELECT DISTINCT {unit}, "
        f"{short(value)} FROM ...",
        f"Take {name} of all values.",
        call.span,
        tuple(
            Edit(
                "replace",
                call.span,
                f"{name}({value})",
                f"{name} of all values, not of different ones",
            )
            for _ in call.args[:1]
            if value
        ),
    )
