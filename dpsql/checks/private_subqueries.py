"""DP112: a subquery inside an expression never shows rows of units.

What: a subquery that is not a semi or anti join is public, or aggregated and released.
Why: its value would be one unit's, and would be used for all.
Example: ``SELECT COUNT(*) FROM orders WHERE amount > 5 OR customer_id IN (SELECT customer_id FROM
visits)``
Instead: ``SELECT COUNT(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM visits)``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.diagnostics.refusal import Refusal
from dpsql.ir.relations import Private, subqueries, walk_relations
from dpsql.sql.bind import Bound
from dpsql.sql.bind.subqueries import free_columns


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse private and correlated subqueries that did not become joins."""
    for relation in walk_relations(bound.relation):
        for subquery in subqueries(relation):
            private = isinstance(subquery.relation.privacy, Private)
            if private or free_columns(subquery.relation):
                yield Refusal(
                    "DP112",
                    "this subquery returns rows of units"
                    if private
                    else "this subquery depends on the row around it",
                    "Its result comes from the rows of some units and would be used for the "
                    "rows of others. It can be answered as a separate condition that is joined "
                    "with AND and tied to the same unit. A subquery that aggregates can be "
                    "answered too.",
                    "Write it as a separate condition: WHERE EXISTS (SELECT 1 ...) AND ...",
                    subquery.span,
                )
