"""What rows of a unit count as follows from that unit's rows alone, as the README says.

So no count grows when a unit goes. If one does, rows of others were bounded together with it.
"""

from __future__ import annotations

import re

from tests.adversary.model import Case, Finding, Measured, finding
from tests.adversary.seams import same

_OTHERS = re.compile(
    r"\b(SUM|AVG|MIN|MAX|MEDIAN|PERCENTILE|QUANTILE|VAR|STDDEV|CORR|COVAR|REGR|BOOL|MODE|APPROX|DP_)\w*\s*\(",
    re.IGNORECASE,
)
"""Aggregates whose integers may be below zero, or are no numbers of rows or units."""


class Alone:
    """Compares counts of a database with those of the same without a unit."""

    name = "alone"

    def judge(self, case: Case) -> Finding | None:
        """The first count that is larger without a unit."""
        if case.relation != "without" or not case.pinned:
            return None
        pairs = zip(case.left.transcripts, case.right.transcripts, strict=False)
        for number, (left, right) in enumerate(pairs):
            if _OTHERS.search(left.step.text):
                continue
            for one, other in zip(left.measured, right.measured, strict=False):
                grown = _grown(one, other)
                if grown:
                    return finding(
                        self.name,
                        case,
                        number,
                        "a count grows when a unit goes",
                        [grown, one.statement],
                    )
        return None


def _grown(one: Measured, other: Measured) -> str:
    """The first group with a larger count in the second world."""
    places = {tuple(map(same, key)): at for at, key in enumerate(one.keys)}
    for mine, theirs in zip(one.draws, other.draws, strict=False):
        for key, count in zip(other.keys, theirs.exact, strict=False):
            at = places.get(tuple(map(same, key)))
            before = 0 if at is None or at >= len(mine.exact) else mine.exact[at]
            if isinstance(count, int) and count > (before or 0):
                return f"{key!r}: {before} and {count}"
    return ""
