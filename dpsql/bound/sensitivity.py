"""How far one unit moves a statistic, derived from the strategy's limits on rows and groups.

Neighbouring tables differ by all rows of one unit (of ``size`` units, for a declared group).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import ClassVar, Protocol

from dpsql.bound.cuts import Cut
from dpsql.catalog.statistic import Rows, Statistic, Total, Units, Values
from dpsql.plan.nodes import Cells

WEIGHT_BITS = 20
"""Weights of rows are multiples of ``2**-WEIGHT_BITS``, unless noise hides steps that fine."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far one unit can move a statistic's vector over all groups, in grid steps."""

    l1: Fraction
    l2_squared: Fraction


class Strategy(Protocol):
    """What pricing and statements need from a strategy. Each strategy's file has the argument."""

    @property
    def name(self) -> str:
        """The name of the strategy, in a word or two, for people."""
        ...

    @property
    def size(self) -> int:
        """How many units are protected together, such as a household that the policy declares."""
        ...

    @property
    def groups(self) -> int:
        """The most groups of a unit that is as declared; where units are counted, of any unit."""
        ...

    @property
    def rows_in_group(self) -> int:
        """The most rows of a unit that count in one group."""
        ...

    @property
    def counts(self) -> Sensitivity:
        """How far one unit moves the numbers of rows of all groups."""
        ...

    @property
    def counted_units(self) -> Sensitivity:
        """How far one unit moves the numbers of units of all groups."""
        ...

    @property
    def totals(self) -> Sensitivity:
        """How far one unit moves the sums of all groups, in units of the most that a row adds."""
        ...

    @property
    def bits(self) -> int:
        """Numbers of rows are counted in steps of ``2**-bits``."""
        ...

    @property
    def unit_bits(self) -> int:
        """Numbers of units are counted in steps of ``2**-unit_bits``."""
        ...

    @property
    def bin_bits(self) -> int:
        """Rows that are counted by value are counted in steps of ``2**-bin_bits``."""
        ...

    @property
    def reads_units(self) -> bool:
        """Whether the statement needs to know which unit a row belongs to."""
        ...

    @property
    def most_read(self) -> int | None:
        """The most rows of a unit that are read from a prepared copy; None: no copy is needed."""
        ...

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """What may be left out of an answer: see ``bound.cuts``."""
        ...

    def touched(self, cells: Cells | None) -> int:
        """The most groups that hold rows of any one unit, as the statement reads them.

        Removing one unit changes the sums of no more groups than this.
        """
        ...

    def bounds(self, statistic: Statistic) -> bool:
        """Whether the strategy bounds this kind of statistic."""
        ...

    def keeps_all(self, most: int) -> bool:
        """Whether a unit with ``most`` rows loses nothing: full weights, and no group left out."""
        ...


class SameForAll:
    """What follows where a strategy bounds rows and groups, and treats all sums over rows alike.

    Argument: a number of units counts a unit at most once in each of its groups. In a sum, a row
        adds at most ``reach`` times its count. So the sum of each group moves by at most ``reach``
        times the change of its number of rows.
    """

    __slots__ = ()
    unit_bits: ClassVar[int] = 0

    @property
    def counted_units(self: Strategy) -> Sensitivity:
        """One in each group of a unit."""
        return Sensitivity(Fraction(self.groups), Fraction(self.groups))

    @property
    def totals(self: Strategy) -> Sensitivity:
        """As the numbers of rows."""
        return self.counts


def sensitivity(statistic: Statistic, reach: int | Fraction, bounding: Strategy) -> Sensitivity:
    """The sensitivity of a statistic to which one row adds at most ``reach``.

    Claim: adding or removing one unit moves the vector of this statistic over all groups by at
        most ``l1`` in sum and ``sqrt(l2_squared)`` in Euclidean norm; where ``size`` units count as
        one, adding or removing all of them does.
    Assumes: the statement is the strategy's own (``apply``), so that ``counted_units``, ``counts``
        and ``totals`` hold.
    Argument: numbers of units, numbers of rows and sums move as the strategy says. Rows and sums
        are in steps of which a row adds at most ``reach``. A number of distinct values counts at
        most ``count_pairs`` pairs of group and value of a unit, perhaps all in one group. Where the
        statistic has a cap, ``reach`` bounds a unit in a group (``bound.caps``), and ``groups``
        cells change. Several units move the vector by no more than the sum of their separate moves.

    >>> from dpsql.bound.group_caps import GroupCaps
    >>> sensitivity(Rows(), 1, GroupCaps(groups=3, limit=True, per_group=4))
    Sensitivity(l1=Fraction(12, 1), l2_squared=Fraction(48, 1))
    """
    assert bounding.bounds(statistic), f"{bounding.name} says nothing of {statistic}"
    size = bounding.size
    if isinstance(statistic, Values):
        pairs = Fraction(count_pairs(statistic, bounding))
        return Sensitivity(pairs * size, (pairs * size) ** 2)
    moved = Fraction(reach * size)
    if has_cap(statistic):
        return Sensitivity(bounding.groups * moved, bounding.groups * moved**2)
    match statistic:
        case Units():
            vector = bounding.counted_units
        case Total():
            vector = bounding.totals
        case _:
            vector = bounding.counts
    return Sensitivity(vector.l1 * moved, vector.l2_squared * moved**2)


def has_cap(statistic: Statistic) -> bool:
    """Whether an aggregate sets its own cap on the contribution of a unit to a group."""
    return isinstance(statistic, Rows | Total) and statistic.cap is not None


def is_of_units(statistic: Statistic) -> bool:
    """Whether the statistic depends on the number of a unit's groups, not on its rows' weights."""
    return isinstance(statistic, Units) or has_cap(statistic)


def count_pairs(statistic: Values, bounding: Strategy) -> int:
    """The most pairs of group and value that a unit may contribute: no more than it has rows.

    The number of declared values bounds pairs only in statements that know whose a row is, since
    these keep no more pairs of a unit. Other statements count each undeclared value of a unit.

    >>> from dpsql.bound.group_caps import GroupCaps
    >>> from dpsql.ir.expressions import integer
    >>> count_pairs(Values((integer(1),)), GroupCaps(groups=3, limit=True, per_group=4))
    12
    """
    most = int(bounding.counts.l1)
    if not bounding.reads_units:
        return most
    return max(1, min(most, _options(statistic) * bounding.groups))


def _options(statistic: Values) -> int:
    """The number of declared values of a group, ``2**62`` if not declared; data may hold others."""
    known = [v.shape.domain.members for v in statistic.values]
    several = len(known) > 1  # then NULL is one more value
    return prod(2**62 if members is None else len(members) + several for members in known)
