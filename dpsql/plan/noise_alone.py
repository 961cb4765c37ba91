"""Values that noise alone may decide: NULL in the place of a number.

A mean is a total over a count. Where the count is small beside the noise, the mean may be any value
of its range, and plain SQL may have NULL there. Such a mean is not shown as a number. The same
holds for a value chosen by its rank, where a number of its rows is released beside it.

Claim: which values are hidden is a function of released numbers, public ranges and public noise
    laws, so it costs nothing. The mean of no rows is hidden in at least 19 of 20 answers, and
    always if its number of rows has no noise.
Assumes: the noise of totals and counts is drawn as it was priced.
Argument: let the values, less the middle of their range, have the ends ``-half`` and ``half``, and
    let t be their released total and n their released number. The mean may be ``half`` if ``half *
    n - t`` may be the noise of a zero, and ``-half`` if ``half * n + t`` may be. It may be any
    value between them if both hold, so if ``half * n + |t|`` is at most the half width of that
    noise. If n is not above 0, there may be no rows. Over no rows both numbers are noise alone.
    Where the range is a single value, n alone tells whether there are rows. A rank may be any if it
    may be off by as many rows as there are on the longer side of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from dpsql.catalog.build import call as apply
from dpsql.catalog.build import not_null, real, whole
from dpsql.catalog.statistic import Lowered, Quantile, Rows
from dpsql.ir.expressions import NULL, Call, Case, Column, Expression, Parameter, Shape, substitute
from dpsql.ir.relations import Project
from dpsql.plan.nodes import HiddenMean, HiddenRank, Measurement
from dpsql.policy.types import Kind

Show = Literal["sensible", "always"]
Hidden = HiddenMean | HiddenRank
WIDTH = math.log(20) / math.sqrt(2)
"""The half width of 95 % of Laplace noise, in standard deviations. Other noise is within it more often."""
_NUMBER = Shape(Kind.DOUBLE, nullable=False)
_NAME = re.compile(r"m\d+_noise_\d+_\d+")


def hide(
    found: Project, measurement: Measurement, lowered: Sequence[Lowered]
) -> tuple[Project, tuple[Hidden, ...]]:
    """The finished groups, with NULL for each value that noise alone may decide; these values."""
    values, first = list(found.values), len(found.values) - len(lowered)
    decided = [_hidden_value(measurement, low) for low in lowered]
    for i, hidden in enumerate(decided, first):
        if hidden is not None:
            shape = values[i].shape.optional()
            test = _told_from_noise(hidden, measurement.columns)
            values[i] = Case(((test, values[i]),), replace(NULL, shape=shape), shape)
    return replace(found, values=tuple(values)), tuple(h for h in decided if h is not None)


def with_hidden(measurement: Measurement, name: str, hidden: tuple[Hidden, ...]) -> Measurement:
    """The measurement, if it has the name, with more values that may be hidden."""
    if measurement.name != name:
        return measurement
    return replace(measurement, hidden=tuple(dict.fromkeys((*measurement.hidden, *hidden))))


def _hidden_value(measurement: Measurement, lowered: Lowered) -> Hidden | None:
    """What decides whether an aggregate is hidden; None if it never is."""
    name = f"{measurement.name}_noise"
    if lowered.mean is not None:
        mean = lowered.mean[0]
        total, count = (measurement.statistics.index(s) for s in lowered.mean)
        low, high = mean.cap or (mean.low, mean.high)
        return HiddenMean(total, count, (high - low) / 2, f"{name}_{total}_{count}")
    match lowered.statistics:
        case (Quantile() as chosen,):
            rows = _number_of_rows(chosen, measurement)
            value = measurement.statistics.index(chosen)
            return None if rows is None else HiddenRank(value, rows, f"{name}_{value}_{rows}")
        case _:
            return None


def _number_of_rows(chosen: Quantile, measurement: Measurement) -> int | None:
    """The position of a number of rows that is no less than the number of values."""
    known = (Rows(not_null(chosen.value, chosen.where)), Rows(chosen.where), Rows())
    found = (measurement.statistics.index(r) for r in known if r in measurement.statistics)
    return next(found, None)


def _told_from_noise(hidden: Hidden, columns: Sequence[Column]) -> Expression:
    """Whether there are rows, and a value of the range is excluded, at one of its ends at least."""
    count = columns[hidden.count]
    moved: Expression = count
    if isinstance(hidden, HiddenMean) and hidden.half:
        rows = apply("multiply", real(hidden.half), count)
        moved = apply("add", rows, apply("abs", columns[hidden.total]))
    excluded = apply("gt", moved, Parameter(hidden.width, _NUMBER))
    return apply("and", apply("gt", count, whole(0)), excluded)


def without_hiding(value: Expression) -> Expression:
    """The value as it would be if nothing were hidden, so that intervals can be computed."""

    def inner(node: Expression) -> Expression | None:
        match node:
            case Case(whens=((Call(args=(_, Call(args=(_, Parameter(name=name))))), shown),)):
                return without_hiding(shown) if _NAME.fullmatch(name) else None
            case _:
                return None

    return substitute(value, inner)


def noise_width(mean: HiddenMean, total: float, count: float) -> float:
    """The half width of the noise of ``half * n + t``, from the standard deviations of both numbers.

    >>> from fractions import Fraction
    >>> noise_width(HiddenMean(0, 1, Fraction(1, 2), ""), 0.0, 2.0) == WIDTH
    True
    """
    return WIDTH * (math.hypot(total, float(mean.half) * count) if mean.half else count)
