"""DP115: rows that are made of constants alone are bounded before they are made.

What: joins of VALUES, of GENERATE_SERIES and of what is computed from them make at most ten million
rows.
Why: a few words would else keep an engine at work for years, though no table is read.
Example: ``SELECT COUNT(*) FROM GENERATE_SERIES(1, 10000) AS a(x), GENERATE_SERIES(1, 10000) AS
b(y)``
Instead: ``SELECT COUNT(*) FROM GENERATE_SERIES(1, 1000) AS a(x), GENERATE_SERIES(1, 1000) AS b(y)``
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dpsql.diagnostics.refusal import Refusal
from dpsql.ir.relations import (
    Aggregate,
    Join,
    Limit,
    Relation,
    Scan,
    Stored,
    Union,
    Values,
    inputs,
    subqueries,
)
from dpsql.sql.bind import Bound

MOST_CONSTANT_ROWS = 10_000_000


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse the first join that makes too many."""
    counts = _Counts()
    counts.of(bound.relation)
    for join in counts.large[:1]:
        yield Refusal(
            "DP115",
            f"this join makes more than {MOST_CONSTANT_ROWS} rows of constants",
            "These rows come from no table, so no other limit bounds how long the engine works.",
            "Join fewer lists of constants, or aggregate each one before the join.",
            join.span,
        )


@dataclass(slots=True)
class _Counts:
    """Bounds the numbers of rows of relations that read no table; collects joins with too many."""

    large: list[Join] = field(default_factory=list)

    def of(self, relation: Relation) -> int | None:
        """The most rows of a relation; None if it reads a table."""
        for subquery in subqueries(relation):
            self.of(subquery.relation)
        below = [self.of(part) for part in inputs(relation)]
        known = [count for count in below if count is not None]
        if isinstance(relation, Scan | Stored) or len(known) < len(below):
            return None
        match relation:
            case Values(rows=rows):
                return len(rows)
            case Join():
                return self._joined(relation, *known)
            case Union():
                return sum(known)
            case Aggregate(keys=()):
                return max(1, len(relation.sets))
            case Limit(count=int() as count):
                return min(count, *known)
            case _:
                return known[0]

    def _joined(self, join: Join, left: int, right: int) -> int:
        """The most rows of a join; in an outer join, rows of both sides may have no partner."""
        count = max(left * right, left + right)
        if count > MOST_CONSTANT_ROWS:
            self.large.append(join)
        return count
