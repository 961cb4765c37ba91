"""DP100: intervals are of noised numbers.

What: ``DP_INTERVAL_LOW`` and ``DP_INTERVAL_HIGH`` stand above every aggregate over private rows.
Why: they tell how far noise may be off; a row has no noise, and is not shown.
Example: ``SELECT COUNT(*) FROM orders WHERE DP_INTERVAL_LOW(amount) > 10``
Instead: ``SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) FROM orders``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.diagnostics.refusal import Refusal
from dpsql.ir.expressions import Call
from dpsql.ir.expressions import walk as parts
from dpsql.ir.relations import Private, expressions, inputs, walk_relations
from dpsql.sql.bind import Bound
from dpsql.sql.own import OWN


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse intervals over rows that have no noise yet."""
    for relation in walk_relations(bound.relation):
        if not any(isinstance(below.privacy, Private) for below in inputs(relation)):
            continue
        for expression in expressions(relation):
            for part in parts(expression):
                if isinstance(part, Call) and part.function in OWN.values():
                    yield Refusal(
                        "DP100",
                        "an interval needs a noised number, and this is a value of single rows",
                        "An interval says how far noise may have moved a number. Values of rows "
                        "have no noise and are not shown.",
                        "Name a noised number of the same SELECT: COUNT(*) AS n, DP_INTERVAL_LOW(n).",
                        part.span,
                    )
