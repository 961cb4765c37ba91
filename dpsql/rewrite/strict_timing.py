"""Under strict timing all rows are read, and conditions become a column that aggregates count by.

The time that a filter or a join takes would tell whether some unit's row passes it.

Claim: the statement gives the same integers as with its conditions in their places.
Assumes: expressions are total, also over rows that are not kept.
Argument: the lifted relation has every row of the measurement's, with ``kept`` true, and others
    with ``kept`` false, which count in no statistic, no limit and no group (``plan.lift``).
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.plan.steady import steady
from dpsql.rewrite.draft import Draft


def strict_timing(draft: Draft) -> Draft:
    """The rows without the conditions that decide which rows are read."""
    lifted = draft.measurement.lifted
    if lifted is None:
        return draft
    known = steady(draft.measurement.input)
    draft = draft.read(lifted.input, lifted.kept)
    return replace(draft, rows=replace(draft.rows, steady=known, strict=True))
