"""DP101: the answer is made of aggregates, never of rows.

What: the outermost relation must not be private.
Why: noise cannot hide a row that is shown.
Example: ``SELECT amount FROM orders``
Instead: ``SELECT COUNT(*) FROM orders``
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpsql.catalog.aggregates.mode import few
from dpsql.diagnostics.edit import Edit
from dpsql.diagnostics.refusal import Refusal
from dpsql.ir.expressions import Column
from dpsql.ir.relations import Aggregate, Private, Scan, walk_relations
from dpsql.sql.bind import Bound
from dpsql.sql.bind.scope import spell_name

_ALONE = re.compile(r"[a-z_]\w*", re.IGNORECASE)
"""Names of columns that can be written alone, without quotes."""


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse a query whose rows are rows of units."""
    if not isinstance(bound.relation.privacy, Private):
        return
    tables = [
        r for r in walk_relations(bound.relation) if isinstance(r, Scan) and not r.table.public
    ]
    table = tables[0].view or tables[0].table.name
    grouped = any(isinstance(r, Aggregate) for r in walk_relations(bound.relation))
    unit = bound.relation.privacy.unit
    spans = [c.span for c in bound.columns if c.span is not None]
    yield Refusal(
        "DP101",
        f'this query returns one row per {unit} of "{table}"; only aggregates over many are '
        "answered"
        if grouped
        else f'this query returns rows of "{table}", not aggregates over them',
        f"Every output row would be about one {unit}. Noise cannot hide a row that is shown.",
        "Count the rows, average the numbers, or group by a column whose values many units share.",
        spans[0] if spans else tables[0].span,
        edits=(_averages(bound) if grouped else _summary(bound), Edit("count_rows")),
    )


def _summary(bound: Bound) -> Edit:
    """The suggested use of each output: a group key, the month of one, an average, or none."""
    units = {
        f.number
        for scan in walk_relations(bound.relation)
        if isinstance(scan, Scan)
        for f in scan.unit_fields
    }
    return Edit("summarize", None, " ".join(_word(column, units) for column in bound.columns))


def _averages(bound: Bound) -> Edit:
    """The numbers of each unit, averaged over the units."""
    groups = [r for r in walk_relations(bound.relation) if isinstance(r, Aggregate)]
    keys = {f.number for r in groups for f in r.fields[: len(r.keys)]}
    means = [
        spell_name(c.name)
        for c in bound.columns
        if c.shape.kind.numeric and c.number not in keys and _ALONE.fullmatch(c.name)
    ]
    return Edit("count_rows", None, "\n".join(means))


def _word(column: Column, units: set[int]) -> str:
    kind = column.shape.kind
    if column.identifier or column.number in units or kind.element is not None:
        return "skip"
    if few(column.shape):
        return "key"
    if kind.numeric:
        return "mean"
    return "month" if kind.temporal else "key"
