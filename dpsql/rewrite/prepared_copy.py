"""Rows are read from prepared copies of their tables, where there are copies.

A copy holds the unit's key with each row, so that no path is followed. It holds values in steps, so
that no value is clamped.

Claim: the rows are those of the tables. Where the strategy reads ranked rows, each unit has at most
    as many rows as the strategy says.
Assumes: a copy has the rows and values that ``bound.copies`` says.
Argument: see ``bound.reading``.
"""

from __future__ import annotations

from dpsql.rewrite.draft import Draft


def prepared_copy(draft: Draft) -> Draft:
    """The rows as read from copies."""
    reading, most_read = draft.reading, draft.bounding.most_read
    if reading is None or draft.rows.strict:
        assert most_read is None
        return draft
    return draft.read(reading.relation if most_read is None else reading.limited(most_read))
