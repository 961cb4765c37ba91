"""A change of a refused statement that a rule proposes. ``sql.suggest`` makes it, and tries the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpsql.diagnostics.span import Span

How = Literal[
    "replace",
    "rename",
    "leave_out",
    "on",
    "using",
    "inner",
    "partition",
    "group",
    "values",
    "first_group",
    "summarize",
    "count_rows",
    "alias",
]
"""What is done at a place.

``replace``: the expression there becomes ``sql``. ``rename``: the column there, wherever it stands,
becomes the column ``sql`` of the same table. ``leave_out``: what stands there is left out.
``on``: the join there has ``sql`` among its conditions, and keeps no side whole. ``using``: the NATURAL
join there names its columns. ``inner``: the join there
keeps no side whole. ``partition``: the window there is also by ``sql``. ``group``: the SELECT around it is
also grouped by ``sql``. ``values``: it is grouped by ``sql``, which stands in the place of the aggregate there
beside the number of rows. ``first_group``: the output
there becomes the first line of ``sql``, a key, and the groups are sorted by the second line; one is kept. ``summarize``: each output of the outermost SELECT becomes what the words of ``sql``
say: ``key``, ``month``, ``mean`` or ``skip``. ``count_rows``: the rows of the whole query are counted.
``alias``: the table that is joined there is called ``sql``.
"""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change at one place; names in ``sql`` are the analyst's own, or the policy's for this role."""

    how: How
    span: Span | None = None
    sql: str = ""
    note: str = ""
    """What is said of it, where the answer is about something else."""
