"""How a unit's contribution is bounded, and what that makes of sensitivities.

A bounding is a list of stages; a stage that metadata makes unnecessary is not there. Neighbours
differ by all rows of one unit (of ``size`` units, for a declared group).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt, prod

from dpsql.catalog.statistic import Rows, Statistic, Total, Units, Values
from dpsql.plan.nodes import Cells, Measurement
from dpsql.plan.steady import steady

WEIGHT_BITS = 20
STRATEGIES = (
    "one row per unit", "row weights", "unit totals", "group caps", "weights and groups",
    "norm clip", "prepared rows",
)  # fmt: skip
"""Every ``name`` that a bounding has."""


@dataclass(frozen=True, slots=True)
class Bounding:
    """The stages between a unit's rows and the sums.

    ``rows``: each row weighs ``min(1, rows / rows of its unit)``, so a unit weighs at most
    ``rows`` in all; or, where ``ranked``, only so many rows of a unit are read (from a prepared
    copy). Where ``valued``, rows are not counted as one but by their values, as shares of the
    farthest end of the range: ``rows`` is then how many rows at that end a unit may be worth, in
    the sum that has most of it. ``grouped``: rows are first added up by (unit, group). Then a
    unit keeps at most ``groups`` groups, drawn by a salted hash, where ``limit`` says so (where
    not, it cannot have more), its count in each is capped at ``per_group``, and the Euclidean norm
    of its counts over groups at ``norm``. With no stage at all a unit has one row.
    """

    rows: int | Fraction | None = None
    grouped: bool = False
    groups: int = 1
    limit: bool = False
    per_group: int | None = None
    norm: Fraction | None = None
    bits: int = 0
    """Weights and factors are multiples of ``2**-bits``."""
    size: int = 1
    """How many units count as one: a household of the policy."""
    ranked: bool = False
    valued: bool = False

    @property
    def weighed(self) -> bool:
        """Whether rows have weights."""
        return self.rows is not None and not self.ranked

    @property
    def fine(self) -> int:
        """Rows that are counted by value weigh multiples of ``2**-fine``.

        A cap on rows in a group becomes a weight there, so that no value is preferred.
        """
        return self.bits if self.per_group is None else WEIGHT_BITS

    @property
    def name(self) -> str:
        """The strategy in a word or two, for people."""
        if self.norm is not None:
            return "norm clip"
        if not self.grouped:
            if self.ranked:
                return "prepared rows"
            return "one row per unit" if self.rows is None else "row weights"
        if self.rows is not None:
            return "weights and groups"
        return "unit totals" if self.groups == 1 and not self.limit else "group caps"


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far one unit can move a statistic's vector over all groups, in grid steps."""

    l1: Fraction
    l2_squared: Fraction


def sensitivity(statistic: Statistic, reach: int | Fraction, bounding: Bounding) -> Sensitivity:
    """The sensitivity of a statistic one row of which adds at most ``reach``.

    Claim: adding or removing one unit moves the vector of this statistic over all groups by at
        most ``l1`` in sum and ``sqrt(l2_squared)`` in Euclidean norm; where ``size`` units count as
        one, adding or removing all of them does.
    Assumes: the statement of ``bound`` applies the stages of ``bounding``; where it has
        none, a unit has one row (its key is unique).
    Argument: where rows are ranked no more than ``rows`` of a unit are read, each of weight one.
        With row weights the unit's weights sum to at most ``rows`` and products are rounded
        toward zero, so the vector's L1 norm, hence its L2 norm, is at most rows * reach. With
        group caps at most ``groups`` cells change, each by at most per_group * reach. A norm clip
        bounds the counts' L2 norm by ``norm`` and scales totals by the same factor, so a cell's
        total is at most its count times reach. Each stage only lowers what came before, so the
        least bound holds. Valued weights are min(1, limit / the sum of |value|) for the least of
        all totals, each with its own ``limit = rows * reach``, rounded down: rows that are rounded
        toward zero then add up to at most ``limit`` in absolute value, over all groups. They say
        nothing of numbers of rows, which are not asked for there. A unit is counted at most once
        in each of ``groups`` groups. It keeps at most ``kept`` pairs of group and value, perhaps
        all in one group. Where the statistic has a cap, ``reach`` is of a unit in a group
        (``bound.caps``), and ``groups`` cells change.

    >>> from dpsql.catalog.statistic import Rows
    >>> sensitivity(Rows(), 1, Bounding(grouped=True, groups=3, limit=True, per_group=4))
    Sensitivity(l1=Fraction(12, 1), l2_squared=Fraction(48, 1))
    """
    size = bounding.size
    assert isinstance(statistic, Units | Total) or not bounding.valued
    if isinstance(statistic, Units):
        groups = Fraction(bounding.groups)
        return Sensitivity(groups * size, groups * size**2)
    if isinstance(statistic, Values):
        pairs = Fraction(kept(statistic, bounding))
        return Sensitivity(pairs * size, (pairs * size) ** 2)
    if isinstance(statistic, Rows | Total) and statistic.cap is not None:
        moved = Fraction(reach * size)
        return Sensitivity(bounding.groups * moved, bounding.groups * moved**2)
    l1, l2_squared = (
        min(b.l1 for b in _bounds(bounding)),
        min(b.l2_squared for b in _bounds(bounding)),
    )
    return Sensitivity(l1 * reach * size, l2_squared * (reach * size) ** 2)


def touched(bounding: Bounding, cells: Cells | None) -> int:
    """In how many groups the rows of a unit are, as the statement reads them.

    Claim: without one unit, the sums of no more than so many groups are others.
    Argument: row weights make less of each row, and leave out none: a unit with many rows may be in
        every group. Otherwise a unit has one row, or as many ranked rows as are read, or no more
        than the groups that it keeps.

    >>> touched(Bounding(rows=5, groups=5, bits=20), Cells("", 64))
    64
    >>> touched(Bounding(rows=5, groups=5, ranked=True), Cells("", 64))
    5
    """
    if bounding.grouped or not bounding.weighed:
        return bounding.groups
    assert cells is not None, "without public groups, what a unit has in each is limited"
    return cells.count


def kept(statistic: Values, bounding: Bounding) -> int:
    """How many pairs of group and value a unit may bring: no more than it may have rows.

    >>> from dpsql.ir.expressions import integer
    >>> kept(Values((integer(1),)), Bounding(grouped=True, groups=3, limit=True, per_group=4))
    12
    """
    most = int(min(b.l1 for b in _bounds(bounding)))
    return max(1, min(most, _options(statistic) * bounding.groups))


def _options(statistic: Values) -> int:
    """How many values a group can have, as declared; what is not declared may still be counted."""
    known = [v.shape.domain.members for v in statistic.values]
    several = len(known) > 1  # then NULL is one more
    return prod(2**62 if members is None else len(members) + several for members in known)


def _bounds(bounding: Bounding) -> Iterator[Sensitivity]:
    """What each stage makes of one unit's counts."""
    if bounding.rows is None and not bounding.grouped:
        yield Sensitivity(Fraction(1), Fraction(1))
    if bounding.rows is not None:
        yield Sensitivity(Fraction(bounding.rows), Fraction(bounding.rows) ** 2)
    if bounding.per_group is not None:
        k, c = bounding.groups, bounding.per_group
        yield Sensitivity(Fraction(k * c), Fraction(k * c * c))
    if bounding.norm is not None:
        # A vector with at most k non-zero cells has L1 <= sqrt(k) L2 <= k L2.
        yield Sensitivity(bounding.groups * bounding.norm, bounding.norm**2)


def candidates(
    measurement: Measurement,
    most_groups: int,
    size: int,
    ranked: int | None = None,
    found: Fraction | None = None,
) -> Iterator[Bounding]:
    """Every way to bound this measurement, cheapest first among equals.

    ``most_groups`` is the role's limit on groups of one unit; it applies where the number of
    groups that a unit touches matters. ``ranked`` is how many rows of a unit must be read from a
    prepared copy so that none is lost of units that are as declared; None where there is no copy.
    ``found`` is the most rows of a unit that a search lets count, or what they may be worth.
    """
    if found is not None and found < measurement.privacy.max_rows and not narrows(measurement):
        valued = only_sums(measurement)
        most = measurement.privacy.max_rows if valued else int(found)
        count = most if measurement.cells is None else measurement.cells.count
        groups = min(most_groups, most, count)
        limit = measurement.cells is None or count > groups
        bounding = _fewer_rows(measurement, most, groups, limit=limit)
        if valued:
            bounding = replace(bounding, rows=found, valued=True)
        yield replace(bounding, size=size)
    for bounding in _stages(measurement, most_groups, ranked):
        yield replace(bounding, size=size)


def _stages(measurement: Measurement, most_groups: int, ranked: int | None) -> Iterator[Bounding]:
    privacy, cells, terms = measurement.privacy, measurement.cells, measurement.terms
    count = None if cells is None else cells.count
    if privacy.max_rows == 1:
        yield Bounding(groups=1)
        return
    fewer = None if terms is None else terms.rows
    most = min(privacy.max_rows, fewer or privacy.max_rows)
    most_groups = most_groups if terms is None else terms.groups or most_groups
    groups = min(most_groups, most, count or most)
    per_group = min(most, privacy.per_group or most)
    limit = count is None or count > groups
    if most < privacy.max_rows:
        yield _fewer_rows(measurement, most, groups, limit=limit)
        return
    if _by_group(measurement):
        yield Bounding(grouped=True, groups=groups, limit=limit, per_group=per_group)
        return
    summed = count is not None and not _counts_units(measurement)
    rows = min(most, groups * per_group)
    if summed and ranked is not None and ranked <= rows:
        yield Bounding(rows=ranked, groups=min(ranked, count or 1), ranked=True)
    if groups == 1 and not limit:
        yield Bounding(grouped=True, groups=1, per_group=min(per_group, most))
        return
    weighed = steady(measurement.input)
    if count is not None and summed:
        if weighed:
            yield Bounding(rows=rows, groups=min(most, count), bits=WEIGHT_BITS)
        if per_group < most:
            yield Bounding(
                grouped=True,
                groups=count,
                norm=_root_up(groups) * per_group,
                bits=WEIGHT_BITS,
            )
    yield Bounding(grouped=True, groups=groups, limit=limit, per_group=per_group)
    if weighed and groups * per_group > most:
        yield Bounding(rows=most, grouped=True, groups=groups, limit=limit, bits=WEIGHT_BITS)


def _fewer_rows(measurement: Measurement, most: int, groups: int, *, limit: bool) -> Bounding:
    """What a query asks for that lets fewer rows of a unit count than the policy does."""
    cells = measurement.cells
    if not steady(measurement.input):
        return Bounding(grouped=True, groups=groups, limit=limit, per_group=most // groups)
    if cells is not None and not _counts_units(measurement):
        return Bounding(rows=most, groups=min(most, cells.count), bits=WEIGHT_BITS)
    return Bounding(rows=most, grouped=True, groups=groups, limit=limit, bits=WEIGHT_BITS)


def only_sums(measurement: Measurement) -> bool:
    """Whether values say how much of a unit counts: nothing is asked of its rows but sums of them."""
    totals = [s for s in measurement.statistics if isinstance(s, Total)]
    others = [s for s in measurement.statistics if not isinstance(s, Total | Units)]
    return bool(totals) and not others and all(s.cap is None for s in totals)


def narrows(measurement: Measurement) -> bool:
    """Whether a bound on values is a narrower range: where a unit has one row, all that it has."""
    return measurement.privacy.max_rows == 1 and only_sums(measurement)


def narrowed(measurement: Measurement, found: Fraction) -> Measurement:
    """The measurement with values within so much of the farthest end of their range.

    Claim: a row adds what it would if it weighed ``min(1, limit / |value|)``.
    Argument: a value times that is the nearest number between minus and plus the limit.

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
    return measurement.cells is None or any(
        isinstance(s, Units) or _is_capped(s) for s in measurement.statistics
    )


def _is_capped(statistic: Statistic) -> bool:
    return isinstance(statistic, Rows | Total) and statistic.cap is not None


def _by_group(measurement: Measurement) -> bool:
    """Whether only caps on groups do what the query asks for: in so words, or by its bounds."""
    asked = measurement.terms is not None and measurement.terms.groups is not None
    return asked or any(_is_capped(s) for s in measurement.statistics)


def _root_up(value: int) -> Fraction:
    """A rational not below the square root, close to it.

    >>> float(_root_up(2))
    1.4143
    """
    return Fraction(isqrt(value * 10**8) + 1, 10**4)
