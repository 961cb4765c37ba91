"""DP108: private rows are neither sorted nor cut.

What: LIMIT, OFFSET and ORDER BY stand above the frontier.
Why: which rows are first depends on other people's rows.
Example: ``SELECT COUNT(*) FROM (SELECT * FROM orders LIMIT 10) AS t``
Instead: ``SELECT COUNT(*) FROM orders``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.diagnostics.edit import Edit
from dpsql.diagnostics.refusal import Refusal
from dpsql.ir.relations import Limit, Private, walk_relations
from dpsql.sql.bind import Bound


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse LIMIT over private rows (sorting alone changes no result, so it is allowed)."""
    if isinstance(bound.relation.privacy, Private):
        return  # aggregate_only refuses the whole query
    for relation in walk_relations(bound.relation):
        if isinstance(relation, Limit) and isinstance(relation.privacy, Private):
            yield Refusal(
                "DP108",
                "LIMIT is not answered over private rows",
                "Which rows come first depends on the rows of other units, so one unit could "
                "change everything that is kept.",
                "Use LIMIT after the aggregation, where it keeps some of the noisy groups.",
                relation.span,
                (Edit("leave_out", relation.span),),
            )
