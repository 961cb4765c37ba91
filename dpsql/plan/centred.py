"""Sums beside a count of the same rows: a centred total, and the centre times the count.

Claim: the sum errs no more than if it were measured by itself, at the price of the same query.
Assumes: both have equal shares of the budget.
Argument: a row of a range of half width h around m moves the total by |m| + h. Centred it moves
    it by h, and the count, which is there anyway, by 1: with equal shares of the budget errors
    of h and |m| add in squares, and sqrt(h**2 + m**2) <= h + |m|. A mean of the same rows uses
    both numbers as well, so that SUM, COUNT and AVG are two measurements and not three.

So what is stored of such a query are the centred total and the count, and the sum is computed
from both; which of the forms a query takes is decided by its text and the policy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsql.catalog.build import call as apply
from dpsql.catalog.build import not_null, real
from dpsql.catalog.statistic import Lowered, Rows, Total
from dpsql.ir.expressions import Column, Expression
from dpsql.policy.types import Kind

LARGEST = 2**32
"""Sums of values beyond this are of integers that doubles do not hold; they stay as they are."""


def centred(lowered: Sequence[Lowered]) -> list[Lowered]:
    """The aggregates of one GROUP BY, with sums centred where a count of their rows is there."""
    counts = {s for low in lowered for s in low.statistics if isinstance(s, Rows)}
    return [_centred(low, counts) for low in lowered]


def _centred(low: Lowered, counts: set[Rows]) -> Lowered:
    [total, *rest] = low.statistics or (None,)
    if rest or not isinstance(total, Total) or total.cap is not None:
        return low  # a total of its own is a sum
    middle = (total.low + total.high) / 2
    count = Rows(not_null(total.value, total.where))
    if count not in counts or max(abs(total.low), abs(total.high)) > LARGEST:
        return low

    def finish(columns: tuple[Column, ...]) -> Expression:
        offsets, rows = columns
        found: Expression = offsets
        if middle != 0:
            found = apply("add", apply("multiply", real(middle), rows), offsets)
        if not total.whole:
            return found
        return apply("cast", apply("round", found), option=Kind.INTEGER.value)

    return Lowered((replace(total, centre=middle, whole=False), count), finish)
