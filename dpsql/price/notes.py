"""The notes of an answer: which parts of it come from the policy, and what it may leave out.

Claim: notes depend on the statement, the policy and released numbers only. So each answer to a
    question has the same notes, whether or not anything was left out of it.
Assumes: a priced plan depends on the same alone.
Argument: the functions here get nothing else. A note is written wherever the policy permits a cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import assert_never

from dpsql.bound.cuts import (
    FewerGroups,
    FewerRows,
    LighterRows,
    PlainCut,
    ShorterVectors,
    SmallerCounts,
    SmallerSums,
)
from dpsql.bound.sensitivity import count_pairs
from dpsql.bound.vector_clip import norm_text
from dpsql.catalog.statistic import Rows, Statistic, Total, Units, Values
from dpsql.exact import number
from dpsql.plan.unit_groups import in_one_group
from dpsql.price.priced import PricedMeasurement, PricedPlan


def notes(priced: PricedPlan) -> tuple[str, ...]:
    """All notes of an answer, each once."""
    shown = (_shown_groups(part) for part in priced.parts if part.selection is not None)
    return tuple(dict.fromkeys((*priced.plan.notes, *shown, *cuts(priced))))


def cuts(priced: PricedPlan) -> tuple[str, ...]:
    """The notes on what may be left out before noise is added. Intervals do not include it."""
    found = (note for part in priced.parts for note in _cuts(part))
    return tuple(dict.fromkeys((*priced.plan.clamped, *found)))


def _shown_groups(part: PricedMeasurement) -> str:
    """Which groups are shown where groups are not public."""
    assert part.selection is not None
    few, unit = part.selection.threshold, part.measurement.privacy.unit
    return f"groups of fewer than about {few} units ({unit}) are not shown"


def _cuts(part: PricedMeasurement) -> Iterator[str]:
    unit, statistics = part.measurement.privacy.unit, part.measurement.statistics
    for cut in part.bounding.cuts:
        if isinstance(cut, ShorterVectors):
            yield from _shorter(cut, part)
        elif _may_happen(cut, part):
            yield _said(cut, part)
    for statistic in statistics:
        if isinstance(statistic, Values) and part.bounding.cuts:
            most = count_pairs(statistic, part.bounding)
            yield f"at most {most} different values of a {unit} count"
        if isinstance(statistic, Rows | Total) and statistic.cap is not None:
            low, high = map(number, statistic.cap)
            yield f"what a {unit} adds to a group counts as {low} .. {high} if it is outside"


def _may_happen(cut: PlainCut, part: PricedMeasurement) -> bool:
    """Whether the policy permits the cut, and a statistic depends on it."""
    if isinstance(cut, FewerGroups):
        return not in_one_group(part.measurement)
    return any(map(_is_weighed, part.measurement.statistics))


def _is_weighed(statistic: Statistic) -> bool:
    """Whether it matters how many rows of a unit count, and how much they weigh."""
    match statistic:
        case Units() | Values():
            return False
        case Total(averaged=averaged):
            return not averaged
        case _:
            return True


def _said(cut: PlainCut, part: PricedMeasurement) -> str:
    unit = part.measurement.privacy.unit
    match cut:
        case LighterRows(most=most):
            return f"rows beyond {most} a {unit} weigh less{_rows_key(part, most)}"
        case SmallerSums(most=most):
            rows = number(Fraction(most))
            return f"a {unit} adds to a sum at most what {rows} rows of the largest value do"
        case FewerRows(most=most, in_group=in_group):
            where = " in a group" if in_group else ""
            return f"rows beyond {most} a {unit}{where} do not count{_rows_key(part, most)}"
        case FewerGroups(most=most):
            return _few_groups(part, most)
        case SmallerCounts(most=most):
            said = f"rows weigh less where the counts of a {unit} have a norm above {number(most)}"
            return f"{said} (max_rows_per_group)"
        case _:
            assert_never(cut)


def _shorter(cut: ShorterVectors, part: PricedMeasurement) -> Iterator[str]:
    """What a unit beyond a limit on a vector counts as, for each kind of statistic."""
    unit, statistics = part.measurement.privacy.unit, part.measurement.statistics
    if cut.units is not None and any(isinstance(s, Units) for s in statistics):
        most = number(cut.units)
        yield f"a {unit} in more than {most} groups weighs less in each: counts may be low"
    if any(isinstance(s, Rows) for s in statistics):
        rows = norm_text(cut.rows, cut.norm)
        what = (
            f"with more than {rows} rows"
            if cut.norm == 1
            else f"whose counts have a norm above {rows}"
        )
        yield f"a {unit} {what} weighs less"
    if any(isinstance(s, Total) for s in statistics):
        rows = norm_text(cut.worth, cut.norm)
        end = "" if cut.norm == 1 else " (as a norm over groups)"
        yield f"a {unit} adds to a sum at most what {rows} rows of the largest value do{end}"


def _few_groups(part: PricedMeasurement, most: int) -> str:
    """How many groups of a unit count, and how much that lowers numbers of units.

    Claim: the numbers of units of all groups together are low by at most the factor that is named.
    Assumes: a unit has no more rows than the policy declares.
    Argument: a unit is in no more groups than there are, and in no more than it has rows. It counts
        in ``most`` of them, or in all.
    """
    measurement, privacy = part.measurement, part.measurement.privacy
    count = None if measurement.cells is None else measurement.cells.count
    of = f"{most} groups" if count is None else f"{most} of {count} groups"
    said = f"each {privacy.unit} counts in at most {of}{_groups_key(part, most)}: counts may be low"
    reach = min(count or privacy.max_rows, privacy.max_rows)
    if reach <= most or any(s != Units() for s in measurement.statistics):
        return said
    factor = number(Fraction(reach, most))
    return f"{said}, together by a factor of at most {factor}"


def _groups_key(part: PricedMeasurement, most: int) -> str:
    """The key of the policy that sets the limit; the statement may set it instead."""
    terms, privacy = part.measurement.terms, part.measurement.privacy
    if terms is not None and terms.groups is not None:
        return ""
    return " (max_groups_per_unit)" if most < privacy.max_rows else " (max_rows_per_unit)"


def _rows_key(part: PricedMeasurement, most: int | Fraction) -> str:
    """The key of the policy that sets the limit; a statement or a search may set it instead."""
    terms, privacy = part.measurement.terms, part.measurement.privacy
    if terms is not None and terms.rows is not None:
        return ""
    if most >= privacy.max_rows:
        return " (max_rows_per_unit)"
    return "" if privacy.per_group is None else " (max_rows_per_group)"
