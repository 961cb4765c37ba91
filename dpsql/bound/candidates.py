"""The strategies for a measurement, without the stages that metadata makes unnecessary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from dpsql.bound import (
    Bounding,
    GroupCaps,
    NormClip,
    OneRow,
    PreparedRows,
    RowWeights,
    UnitTotals,
    VectorClip,
    WeightsAndGroups,
)
from dpsql.bound.found_limits import FoundLimits, Norm
from dpsql.bound.norm_clip import least_norm
from dpsql.bound.sensitivity import has_cap, is_of_units
from dpsql.bound.vector_clip import declared_clip, with_limits
from dpsql.catalog.statistic import Rows, Statistic, Total, Units
from dpsql.plan.nodes import Measurement
from dpsql.plan.steady import is_computed, steady
from dpsql.plan.unit_groups import in_one_group


def candidates(
    measurement: Measurement,
    most_groups: int,
    size: int,
    ranked: int | None = None,
    found: FoundLimits | None = None,
    asked: str | None = None,
) -> Iterator[Bounding]:
    """Every strategy for this measurement; among equally accurate ones the cheapest comes first.

    ``most_groups`` is the role's limit on the groups of one unit. It applies to groups that are not
    public, where the number of groups that a unit touches matters. ``ranked`` is the number of rows
    of a unit that must be read from a prepared copy, so that a unit that is as declared loses none;
    None means that there is no copy. ``found`` are the limits that searches have found. Some
    strategies never err least without such limits. An audit has them if it has ``asked`` by name.
    """
    if found is not None and not narrows(measurement):
        for bounding in _with_found(measurement, most_groups, found):
            yield replace(bounding, size=size)
    for bounding in _declared(measurement, most_groups, ranked):
        yield replace(bounding, size=size)
    for bounding in _audited(measurement, most_groups, asked):
        yield replace(bounding, size=size)


def _audited(measurement: Measurement, most_groups: int, asked: str | None) -> Iterator[Bounding]:
    """Strategies for sums in public groups that are candidates for audits alone."""
    most, cells = measurement.privacy.max_rows, measurement.cells
    if cells is None or most == 1 or _counts_units(measurement):
        return
    if asked == VectorClip.name and clips_vectors(measurement):
        yield from _clips(measurement, cells.count)
    if asked == WeightsAndGroups.name and steady(measurement.input):
        yield WeightsAndGroups(most, min(most_groups, most), limit=True)


def _clips(measurement: Measurement, count: int) -> Iterator[VectorClip]:
    """The vector clips of both norms under the limits of the policy.

    A statement may leave no group; its noise is that of one.
    """
    most = measurement.privacy.max_rows
    per_group = min(most, measurement.privacy.per_group or most)
    for norm in NORMS:
        yield declared_clip(max(count, 1), norm, most, per_group)


def _with_found(
    measurement: Measurement, most_groups: int, found: FoundLimits
) -> Iterator[Bounding]:
    """The strategies under the limits that searches have found."""
    cells, most = measurement.cells, measurement.privacy.max_rows
    rows = found.get("rows", 1)
    if cells is not None and clips_vectors(measurement):
        if rows is not None and rows < most and _only_rows(measurement):
            yield _weighed(measurement, most_groups, rows, valued=False)  # as good, and cheaper
        for clip in _clips(measurement, cells.count):
            yield with_limits(clip, found)
        return
    valued = only_sums(measurement)
    limit = found.get("worth", 1) if valued else rows
    if limit is not None and limit < most:
        yield _weighed(measurement, most_groups, limit, valued=valued)
    norm_limit = found.get("rows", 2)
    if cells is not None and norm_limit is not None and not _counts_units(measurement):
        yield NormClip(cells.count, norm_limit)


def _weighed(
    measurement: Measurement, most_groups: int, found: Fraction, *, valued: bool
) -> Bounding:
    """The strategy in which ``found`` rows of a unit count, or rows worth ``found`` in all."""
    cells = measurement.cells
    most = measurement.privacy.max_rows if valued else int(found)
    count = most if cells is None else cells.count
    groups = min(_groups(measurement, most_groups, most), count)
    limit = cells is None or count > groups
    bounding = _fewer_rows(measurement, most, groups, limit=limit)
    if not valued:
        return bounding
    assert isinstance(bounding, RowWeights | WeightsAndGroups), "only steady rows are searched"
    return replace(bounding, rows=found, valued=True)


def _declared(measurement: Measurement, most_groups: int, ranked: int | None) -> Iterator[Bounding]:
    """The strategies that keep a unit within the limits of the policy, or of the query.

    That a unit has one row of a computed table, or that a row meets one row of it, was verified in
    another reading. So the statement caps what a unit adds there too.
    """
    privacy, cells, terms = measurement.privacy, measurement.cells, measurement.terms
    count = None if cells is None else cells.count
    if privacy.max_rows == 1 and not (privacy.key and is_computed(measurement.input)):
        yield OneRow()
        return
    fewer = None if terms is None else terms.rows
    most = min(privacy.max_rows, fewer or privacy.max_rows)
    groups = _groups(measurement, most_groups, most)
    per_group = min(most, privacy.per_group or most)
    limit = count is None or count > groups
    if most < privacy.max_rows:
        yield _fewer_rows(measurement, most, groups, limit=limit)
        return
    if _by_group(measurement):
        yield _caps(groups, per_group, limit=limit)
        return
    summed = count is not None and not _counts_units(measurement)
    if summed and ranked is not None and ranked <= min(most, groups * per_group):
        yield PreparedRows(ranked, min(ranked, count or 1))
    if groups == 1 and not limit:
        yield UnitTotals(per_group)
        return
    if summed and count is not None:
        yield from _of_sums(measurement, most, per_group, max(count, 1))
    yield GroupCaps(groups, limit, per_group)
    if not summed:
        yield from _of_units(measurement, most, groups, limit=limit)


def _of_sums(measurement: Measurement, most: int, per_group: int, count: int) -> Iterator[Bounding]:
    """The strategies for sums over the rows of a unit in public groups, which leave out no group."""
    if steady(measurement.input):
        yield RowWeights(min(most, count * per_group), min(most, count))
    if per_group < most:
        full = min(math.ceil(most / per_group), count)
        yield NormClip(count, least_norm(full, per_group))


def _of_units(
    measurement: Measurement, most: int, groups: int, *, limit: bool
) -> Iterator[Bounding]:
    """The strategies where the number of groups of a unit matters as well."""
    privacy, cells = measurement.privacy, measurement.cells
    per_group = min(most, privacy.per_group or most)
    if cells is not None and clips_vectors(measurement):
        yield from _clips(measurement, cells.count)
    if steady(measurement.input) and groups * per_group > most:
        yield WeightsAndGroups(most, groups, limit)


def _groups(measurement: Measurement, most_groups: int, most: int) -> int:
    """How many groups of a unit count.

    What the query says, one, or the limit of the role. That limit is for groups that are not
    public. Of public groups a unit counts in all.
    """
    cells, terms = measurement.cells, measurement.terms
    count = None if cells is None else cells.count
    if terms is not None and terms.groups is not None:
        most_groups = terms.groups
    elif _counts_units(measurement) and in_one_group(measurement):
        most_groups = 1
    elif count:
        most_groups = count
    return min(most_groups, most, count or most)  # a statement may leave no group


def _caps(groups: int, per_group: int, *, limit: bool) -> UnitTotals | GroupCaps:
    """The strategy that caps the contribution of a unit to each of its groups."""
    if groups == 1 and not limit:
        return UnitTotals(per_group)
    return GroupCaps(groups, limit, per_group)


def _fewer_rows(measurement: Measurement, most: int, groups: int, *, limit: bool) -> Bounding:
    """The strategy for a query that lets fewer rows of a unit count than the policy does."""
    cells = measurement.cells
    if not steady(measurement.input):
        return _caps(groups, most // groups, limit=limit)
    if cells is not None and not _counts_units(measurement):
        return RowWeights(most, min(most, cells.count))
    return WeightsAndGroups(most, groups, limit)


NORMS: tuple[Norm, ...] = (1, 2)


def clips_vectors(measurement: Measurement) -> bool:
    """Whether all statistics are numbers of units, numbers of rows, or sums, without caps.

    A unit that has one group, and a query that names its own limits, have other strategies.
    """
    kinds = Units | Rows | Total
    plain = all(isinstance(s, kinds) and not has_cap(s) for s in measurement.statistics)
    one = _counts_units(measurement) and in_one_group(measurement)
    return plain and measurement.terms is None and not one


def only_sums(measurement: Measurement) -> bool:
    """Whether values decide how much of a unit counts: only uncapped sums are asked of its rows."""
    totals = [s for s in measurement.statistics if isinstance(s, Total)]
    others = [s for s in measurement.statistics if not isinstance(s, Total | Units)]
    return bool(totals) and not others and all(s.cap is None for s in totals)


def _only_rows(measurement: Measurement) -> bool:
    """Whether all statistics are numbers of rows that have a weight."""
    return all(isinstance(s, Rows) for s in measurement.statistics) and steady(measurement.input)


def narrows(measurement: Measurement) -> bool:
    """Whether a bound on values is a narrower range: units have one row, and sums have no caps."""
    totals = [s for s in measurement.statistics if isinstance(s, Total)]
    plain = bool(totals) and not any(map(has_cap, totals))
    return measurement.privacy.max_rows == 1 and plain


def narrow_ranges(measurement: Measurement, found: Fraction) -> Measurement:
    """The measurement with values clamped to a limit of ``found`` times the range's farthest end.

    Claim: a row adds the same as a row of weight ``min(1, limit / |value|)``.
    Assumes: ``limit`` is above zero.
    Argument: the value times that weight is the number from ``-limit`` to ``limit`` that is nearest
        to the value.

    >>> from dpsql.ir.expressions import integer
    >>> [*map(int, _within(Total(integer(1), Fraction(-20), Fraction(100)), Fraction(1, 10)))]
    [-10, 10]
    >>> [*map(int, _within(Total(integer(1), Fraction(60), Fraction(100)), Fraction(1, 2)))]
    [50, 50]
    """

    def nearer(statistic: Statistic) -> Statistic:
        if not isinstance(statistic, Total):
            return statistic
        low, high = _within(statistic, found)
        return replace(statistic, low=low, high=high)

    return replace(measurement, statistics=tuple(map(nearer, measurement.statistics)))


def _within(total: Total, found: Fraction) -> tuple[Fraction, Fraction]:
    low, high = total.low - total.centre, total.high - total.centre
    limit = found * max(abs(low), abs(high))
    ends = (max(-limit, min(end, limit)) + total.centre for end in (low, high))
    return next(ends), next(ends)


def _counts_units(measurement: Measurement) -> bool:
    return measurement.cells is None or any(map(is_of_units, measurement.statistics))


def _by_group(measurement: Measurement) -> bool:
    """Whether only caps on groups do what the query asks for, by its terms or by its bounds."""
    asked = measurement.terms is not None and measurement.terms.groups is not None
    return asked or any(map(has_cap, measurement.statistics))
