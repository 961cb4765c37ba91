"""How far one unit moves a statistic, by what the strategy that bounds it says of rows and groups.

Neighbours differ by all rows of one unit (of ``size`` units, for a declared group).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Protocol

from dpsql.catalog.statistic import Rows, Statistic, Total, Units, Values
from dpsql.plan.nodes import Cells

WEIGHT_BITS = 20
"""Weights of rows are multiples of ``2**-WEIGHT_BITS``, where noise leaves them visible."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far one unit can move a statistic's vector over all groups, in grid steps."""

    l1: Fraction
    l2_squared: Fraction


class Strategy(Protocol):
    """What prices and statements ask of a strategy. Each strategy has a file that says why it is so."""

    @property
    def name(self) -> str:
        """The strategy in a word or two, for people."""
        ...

    @property
    def size(self) -> int:
        """How many units count as one: a household of the policy."""
        ...

    @property
    def groups(self) -> int:
        """In how many groups a unit is that is as declared; where units are counted, any unit."""
        ...

    @property
    def rows_in_group(self) -> int:
        """How many rows of a unit count in one group at most."""
        ...

    @property
    def counts(self) -> Sensitivity:
        """How far one unit moves the numbers of rows of all groups."""
        ...

    @property
    def bits(self) -> int:
        """Numbers of rows are counted in steps of ``2**-bits``."""
        ...

    @property
    def bin_bits(self) -> int:
        """Rows that are counted by value are counted in steps of ``2**-bin_bits``."""
        ...

    @property
    def reads_units(self) -> bool:
        """Whether the statement needs to know whose a row is."""
        ...

    @property
    def most_read(self) -> int | None:
        """How many rows of a unit a prepared copy lets through; None: the strategy needs no copy."""
        ...

    def touched(self, cells: Cells | None) -> int:
        """In how many groups the rows of any unit are, as the statement reads them.

        Without one unit, the sums of no more than so many groups are others.
        """
        ...

    def bounds(self, statistic: Statistic) -> bool:
        """Whether it says anything of this kind of statistic."""
        ...

    def keeps_all(self, most: int) -> bool:
        """Whether a unit with so many rows loses nothing: no row weighs less, no group is cut."""
        ...


def sensitivity(statistic: Statistic, reach: int | Fraction, bounding: Strategy) -> Sensitivity:
    """The sensitivity of a statistic one row of which adds at most ``reach``.

    Claim: adding or removing one unit moves the vector of this statistic over all groups by at
        most ``l1`` in sum and ``sqrt(l2_squared)`` in Euclidean norm; where ``size`` units count as
        one, adding or removing all of them does.
    Assumes: the statement is the strategy's own (``apply``), so that ``counts`` and ``groups`` hold.
    Argument: a unit is counted at most once in each of ``groups`` groups. It keeps at most ``count_pairs``
        pairs of group and value, perhaps all in one group. Where the statistic has a cap, ``reach``
        is of a unit in a group (``bound.caps``), and ``groups`` cells change. All else is a sum over
        rows, of which each adds ``reach`` times what it counts, at most: so the sum of each group moves
        by ``reach`` times what its number of rows does, and both norms by as much. Several units
        move it by no more than the sum of what each does.

    >>> from dpsql.bound.group_caps import GroupCaps
    >>> sensitivity(Rows(), 1, GroupCaps(groups=3, limit=True, per_group=4))
    Sensitivity(l1=Fraction(12, 1), l2_squared=Fraction(48, 1))
    """
    assert bounding.bounds(statistic), f"{bounding.name} says nothing of {statistic}"
    size = bounding.size
    if isinstance(statistic, Units):
        groups = Fraction(bounding.groups)
        return Sensitivity(groups * size, groups * size**2)
    if isinstance(statistic, Values):
        pairs = Fraction(count_pairs(statistic, bounding))
        return Sensitivity(pairs * size, (pairs * size) ** 2)
    moved = Fraction(reach * size)
    if has_cap(statistic):
        return Sensitivity(bounding.groups * moved, bounding.groups * moved**2)
    counts = bounding.counts
    return Sensitivity(counts.l1 * moved, counts.l2_squared * moved**2)


def has_cap(statistic: Statistic) -> bool:
    """Whether an aggregate says what a unit may add to a group."""
    return isinstance(statistic, Rows | Total) and statistic.cap is not None


def is_of_units(statistic: Statistic) -> bool:
    """Whether it depends on how many groups a unit is in, whatever its rows weigh there."""
    return isinstance(statistic, Units) or has_cap(statistic)


def count_pairs(statistic: Values, bounding: Strategy) -> int:
    """How many pairs of group and value a unit may bring: no more than it may have rows.

    >>> from dpsql.bound.group_caps import GroupCaps
    >>> from dpsql.ir.expressions import integer
    >>> count_pairs(Values((integer(1),)), GroupCaps(groups=3, limit=True, per_group=4))
    12
    """
    most = int(bounding.counts.l1)
    return max(1, min(most, _options(statistic) * bounding.groups))


def _options(statistic: Values) -> int:
    """How many values a group can have, as declared; what is not declared may still be counted."""
    known = [v.shape.domain.members for v in statistic.values]
    several = len(known) > 1  # then NULL is one more
    return prod(2**62 if members is None else len(members) + several for members in known)
