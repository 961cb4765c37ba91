"""DP201: an interval moves a date or a timestamp, and is no value of its own.

What: no column, key or argument of an aggregate is an interval.
Why: engines take ``1 month`` for ``30 days``; a group of both would be named by whichever row came
    first.
Example: ``SELECT INTERVAL '1 month' AS span, COUNT(*) FROM orders GROUP BY 1``
Instead: ``SELECT placed + INTERVAL '1 month' AS day, COUNT(*) FROM orders GROUP BY 1``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.diagnostics.refusal import Refusal
from dpsql.ir.expressions import Expression, Interval, Window
from dpsql.ir.relations import expressions, walk_relations
from dpsql.sql.bind import Bound


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse values that are intervals."""
    for relation in walk_relations(bound.relation):
        for value in expressions(relation):
            if any(isinstance(part, Interval) for part in _values(value)):
                yield Refusal(
                    "DP201",
                    "an interval can only be added to a date or time, or subtracted from one",
                    "Engines treat 1 month and 30 days as equal and show whichever row came "
                    "first, so the answer would depend on the order of rows.",
                    "Add it to a date, or subtract it: placed + INTERVAL '1 month'.",
                    value.span or relation.span,
                )


def _values(value: Expression) -> Iterator[Expression]:
    yield value
    if isinstance(value, Window):
        yield from value.args
