"""DP305: identifiers are never group keys.

What: a column marked ``identifier`` in the policy does not appear in a GROUP BY key.
Why: a group named after a person says that the person is there.
Example: ``SELECT email, COUNT(*) FROM customers GROUP BY email``
Instead: ``SELECT country, COUNT(*) FROM customers GROUP BY country``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.checks.rule import frontier
from dpsql.diagnostics.refusal import Refusal
from dpsql.sql.bind import Bound
from dpsql.sql.bind.scope import spelled
from dpsql.sql.expressions import columns
from dpsql.sql.relations import Scan, walk


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse group keys made from identifiers."""
    for aggregate in frontier(bound):
        for key in aggregate.keys:
            named = [c for c in columns(key) if c.identifier]
            if named:
                yield Refusal(
                    "DP305",
                    f'"{named[0].name}" identifies people and cannot be a group',
                    "A group of this name would say that its bearer is in the data, whatever "
                    "noise its count carries.",
                    _shared(bound, named[0].number),
                    named[0].span or aggregate.span,
                )


def _shared(bound: Bound, number: int) -> str:
    """A query whose groups many people share: by another column of the same table."""
    for scan in walk(bound.relation):
        if isinstance(scan, Scan) and any(f.number == number for f in scan.fields):
            units = {f.number for f in scan.unit_fields}
            others = [f for f in scan.fields if not f.identifier and f.number not in units]
            public = [f for f in others if f.shape.domain.members is not None]
            table = spelled(scan.table.name)
            for field in (*public, *others):
                name = spelled(field.name)
                return f"SELECT {name}, COUNT(*) FROM {table} GROUP BY {name}"
            return f"SELECT COUNT(*) FROM {table}"
    return "Group by something that many share."
