"""DP406: contribution bounds stand on aggregates over private rows.

What: an aggregate with ``contribution_bounds_per_row`` or ``contribution_bounds_per_group`` is
    one that noise is added to.
Why: a bound says what one unit may add to a noised number. Over public rows, over groups that
    are noised already, and over the rows of one unit there is nothing to bound, and clamping
    there would change the answer without a reason.
Example: ``SELECT SUM(inhabitants, contribution_bounds_per_row => (0, 10)) FROM countries``
Instead: ``SELECT SUM(LEAST(GREATEST(inhabitants, 0), 10)) FROM countries``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.checks.rule import is_measured
from dpsql.diagnostics.refusal import Refusal
from dpsql.ir.relations import Aggregate, walk_relations
from dpsql.sql.bind import Bound


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse bounds where no noise is added."""
    for relation in walk_relations(bound.relation):
        if isinstance(relation, Aggregate) and not is_measured(relation):
            for call in relation.calls:
                if call.bounds is not None:
                    yield Refusal(
                        "DP406",
                        "contribution bounds belong to aggregates over private rows",
                        "They bound what one unit adds to a noised number; no noise is added here.",
                        "Clamp the value itself: LEAST(GREATEST(x, 0), 100).",
                        call.bounds.span,
                    )
