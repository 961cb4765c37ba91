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
from dpsql.sql.expressions import columns


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
                    "Group by something that many share.",
                    named[0].span or aggregate.span,
                )
