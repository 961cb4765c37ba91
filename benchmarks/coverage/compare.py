"""Whether a noised answer at a very large epsilon is the answer of plain SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa

from dpsql.price.priced import PricedPlan
from dpsql.release.intervals import widths
from tests.support.answers import Row, kind, rows

RELATIVE = {"whole": 1e-5, "real": 1e-4}
ABSOLUTE = 1e-4
"""What tiny noise may do: relative to the largest value of a column, and to numbers with fractions."""
_SURE = 0.5
"""Whole numbers are exact where less noise than this can be."""

Tolerances = Sequence[float | None]
"""For each column how far values may be apart; None where they are the same or not."""


def differs(
    mine: pa.Table, expected: pa.Table, priced: PricedPlan | None = None, *,
    ordered: bool = False, part: bool = False, least: float = ABSOLUTE,
) -> str:  # fmt: skip
    """What is wrong with an answer, of which ``part`` may be missing; empty when nothing is.

    Numbers with fractions may be ``least`` apart.

    Groups of public keys that plain SQL does not list count as rows of zeros, where the plan
    that made the answer is given.
    """
    kinds = [[kind(t) for t in table.schema.types] for table in (mine, expected)]
    if kinds[0] != kinds[1]:
        return f"types {kinds[0]} instead of {kinds[1]}"
    found, wanted = rows(mine), rows(expected)
    near = [_tolerance(k, [row[i] for row in wanted], least) for i, k in enumerate(kinds[1])]
    extra, missing = _difference(found, wanted, near)
    if priced is not None:
        extra = [row for row in extra if not _empty_group(row, priced, near)]
    if extra or (missing and not part):
        return f"extra {extra[:3]}, missing {missing[:3]} of {len(wanted)}"
    if not ordered:
        return ""
    kept = [row for row in found if any(_same(row, w, near) for w in wanted)]
    pairs = zip(kept, wanted, strict=False)
    return "" if all(_same(a, b, near) for a, b in pairs) else "another order"


def _tolerance(name: str, values: Sequence[object], fraction: float) -> float | None:
    if name not in RELATIVE:
        return None
    largest = max((abs(float(str(v))) for v in values if v is not None), default=0.0)
    least = fraction if name == "real" else 0.0
    allowed = max(least, RELATIVE[name] * largest)
    return None if name == "whole" and allowed < _SURE else allowed


def _same(mine: Row, other: Row, near: Tolerances) -> bool:
    return all(_close(*values) for values in zip(mine, other, near, strict=True))


def _close(a: object, b: object, allowed: float | None) -> bool:
    if allowed is None or not isinstance(a, int | float) or not isinstance(b, int | float):
        return a == b
    return abs(a - b) <= allowed


def _difference(
    mine: Sequence[Row], other: Sequence[Row], near: Tolerances
) -> tuple[list[Row], list[Row]]:
    """Rows that only one of the two has."""
    theirs: dict[Row, list[Row]] = defaultdict(list)
    for row in other:
        theirs[_exact(row, near)].append(row)
    extra = []
    for row in mine:
        candidates = theirs[_exact(row, near)]
        same = next((r for r in candidates if _same(row, r, near)), None)
        if same is None:
            extra.append(row)
        else:
            candidates.remove(same)
    return extra, [row for group in theirs.values() for row in group]


def _exact(row: Row, near: Tolerances) -> Row:
    return tuple(v for v, allowed in zip(row, near, strict=True) if allowed is None)


def _empty_group(row: Row, priced: PricedPlan, near: Tolerances) -> bool:
    """A public group without rows: it counts none, or all it measures is zero or unknown."""
    if all(p.measurement.cells is None for p in priced.parts):
        return False
    measured = list(widths(priced, priced.plan.columns))
    if any(row[i] == 0 and near[i] is None for i in measured):
        return True
    return bool(measured) and all(
        row[i] is None or _close(row[i], 0, near[i] or ABSOLUTE) for i in measured
    )
