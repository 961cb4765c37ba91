"""DP305: identifiers are never group keys.

What: a column marked ``identifier`` in the policy does not appear in a GROUP BY key.
Why: a group named after a person says that the person is there.
Example: ``SELECT email, COUNT(*) FROM customers GROUP BY email``
Instead: ``SELECT country, COUNT(*) FROM customers GROUP BY country``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.checks.rule import frontier
from dpsql.diagnostics.edit import Edit
from dpsql.diagnostics.refusal import Refusal
from dpsql.ir.expressions import Column, columns
from dpsql.ir.relations import Aggregate, Scan, walk_relations
from dpsql.sql.bind import Bound
from dpsql.sql.bind.scope import spell_name


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse group keys made from identifiers."""
    for aggregate in frontier(bound):
        for key in aggregate.keys:
            named = [c for c in columns(key) if c.identifier]
            if named:
                yield Refusal(
                    "DP305",
                    f'"{named[0].name}" identifies people and cannot be a group',
                    "A group with this value shows that the person it identifies is in the "
                    "data, however much noise its count has.",
                    "Group by a column whose values many people share.",
                    named[0].span or aggregate.span,
                    _shared(bound, aggregate, named[0]),
                )


def _shared(bound: Bound, aggregate: Aggregate, key: Column) -> tuple[Edit, ...]:
    """Suggests another column of the same table, which many share, or the query without the key."""
    edits: list[Edit] = []
    taken = {c.number for other in aggregate.keys for c in columns(other)}
    for scan in walk_relations(bound.relation):
        if isinstance(scan, Scan) and any(f.number == key.number for f in scan.fields):
            units = {f.number for f in scan.unit_fields}
            others = [f for f in scan.fields if not f.identifier and f.number not in units | taken]
            public = [f for f in others if f.shape.domain.members is not None]
            edits += [
                Edit(
                    "rename",
                    key.span,
                    spell_name(f.name),
                    f'grouped by "{f.name}", whose values many people share, '
                    f'instead of "{key.name}"',
                )
                for f in (public or others)[:1]
            ]
    return (*edits, Edit("leave_out", key.span))
