"""DP101: the answer is made of aggregates, never of rows.

What: the outermost relation must not be private.
Why: noise cannot hide a row that is shown.
Example: ``SELECT amount FROM orders``
Instead: ``SELECT COUNT(*) FROM orders``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.diagnostics.refusal import Refusal
from dpsql.sql.bind import Bound
from dpsql.sql.relations import Aggregate, Private, Scan, walk


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse a query whose rows are rows of units."""
    if not isinstance(bound.relation.privacy, Private):
        return
    tables = [r for r in walk(bound.relation) if isinstance(r, Scan) and not r.table.public]
    table = tables[0].table.name
    grouped = any(isinstance(r, Aggregate) for r in walk(bound.relation))
    unit = bound.relation.privacy.unit
    spans = [c.span for c in bound.columns if c.span is not None]
    yield Refusal(
        "DP101",
        f'this query returns one row per {unit} of "{table}", not aggregates over many'
        if grouped
        else f'this query returns rows of "{table}", not aggregates over them',
        f"Every output row would be about one {unit}. Noise cannot hide a row that is shown.",
        f"SELECT COUNT(*) FROM {table}",
        spans[0] if spans else tables[0].span,
    )
