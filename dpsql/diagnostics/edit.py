"""A change of a refused statement that a rule proposes.

``sql.suggest`` applies the change, and tries whether the result is answered.
"""

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
"""The kinds of changes. Each is made at the place of its ``Edit``, with its text ``sql``.

- ``replace``: the expression becomes ``sql``.
- ``rename``: the column becomes the column ``sql`` of the same table, everywhere in the statement.
- ``leave_out``: the node is left out.
- ``on``: ``sql`` is added to the conditions of the join, which becomes an inner join.
- ``using``: the NATURAL join becomes a join with USING and the columns ``sql``.
- ``inner``: the outer join becomes an inner join.
- ``partition``: ``sql`` is added to the PARTITION BY of the window.
- ``group``: ``sql`` is added to the GROUP BY of the surrounding SELECT.
- ``values``: the SELECT is also grouped by ``sql``. The key ``sql`` takes the place of the
  aggregate, and the number of rows is added as an output.
- ``first_group``: the output becomes the first line of ``sql``, which is added as a key. The groups
  are sorted by the second line, and only the first is kept.
- ``summarize``: each output of the outermost SELECT is changed as the word of ``sql`` in its
  position says: ``key``, ``month``, ``mean`` or ``skip``.
- ``count_rows``: the query becomes a count of its rows. If it becomes a subquery for that, averages
  of the columns in ``sql``, one per line, are added.
- ``alias``: the joined table gets the alias ``sql``.
"""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change at one place.

    Names in ``sql`` are from the statement, or from the part of the policy that the role may see.
    """

    how: How
    span: Span | None = None
    sql: str = ""
    note: str = ""
    """A note for the analyst, if the changed statement answers another question."""
