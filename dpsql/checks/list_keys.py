"""DP201: groups of private rows are told apart by single values, not by lists.

What: no key of a GROUP BY over private rows is a list of quantiles.
Why: groups are put in order before they are shown, so that their order says nothing; lists have
    no such order in every engine.
Example: ``SELECT q, COUNT(*) FROM orders CROSS JOIN (SELECT APPROX_QUANTILES(age, 2) AS q FROM
customers) AS t GROUP BY q``
Instead: ``SELECT m, COUNT(*) FROM orders CROSS JOIN (SELECT MEDIAN(age) AS m FROM customers) AS t
GROUP BY m``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.checks.rule import frontier, short, source_text
from dpsql.diagnostics.refusal import Refusal
from dpsql.sql.bind import Bound


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse keys that are lists."""
    for aggregate in frontier(bound):
        for key in aggregate.keys:
            if key.shape.kind.element is not None:
                yield Refusal(
                    "DP201",
                    f'"{short(source_text(bound, key.span))}" is a list and cannot be a group',
                    "Groups are sorted, so that their order says nothing about rows. Lists have "
                    "no such order.",
                    "Group by one of its values: QUANTILE_CONT(x, 0.5).",
                    key.span,
                )
