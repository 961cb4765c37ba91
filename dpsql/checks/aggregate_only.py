"""DP101: the answer is made of aggregates, never of rows.

What: the outermost relation must not be private.
Why: noise cannot hide a row that is shown.
Example: ``SELECT amount FROM orders``
Instead: ``SELECT COUNT(*) FROM orders``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.checks.rule import rewritten
from dpsql.diagnostics.refusal import Refusal
from dpsql.sql.bind import Bound
from dpsql.sql.bind.scope import spelled
from dpsql.sql.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Limit,
    Private,
    Project,
    Scan,
    Sort,
    Union,
    walk,
)


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
        _counted(bound, table, grouped=grouped),
        spans[0] if spans else tables[0].span,
    )


def _counted(bound: Bound, table: str, *, grouped: bool) -> str:
    """How many rows the analyst's query has: its list replaced, or the query as a subquery."""
    top = bound.relation
    plain = isinstance(top, Project) and isinstance(top.input, Filter | Join | Scan)
    if isinstance(top, Project) and plain and top.values and not grouped:
        first, last = top.values[0].span, top.values[-1].span
        if first is not None and last is not None:
            return rewritten(bound, first.cover(last), "COUNT(*)")
    if any(isinstance(r, Limit | Distinct | Union | Sort) for r in walk(top)):
        return f"SELECT COUNT(*) FROM {spelled(table)}"
    text = bound.source.text.strip().rstrip(";")
    end = "\n" if "--" in text else ""
    return f"SELECT COUNT(*) FROM ({text}{end}) AS rows_of_one"
