"""Vector clip: each statistic of a unit is scaled by itself, so that its vector is short.

The vector of a unit has one number for each group. Numbers of units, numbers of rows and sums of
values have vectors of their own, each with its own limit. A sum has the signs of its values, so
values on both sides of the centre cancel before they are bounded. No group of a unit is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from dpsql.bound.by_unit import by_unit, columns, sum_units
from dpsql.bound.cuts import Cut, ShorterVectors
from dpsql.bound.found_limits import FoundLimits, Norm
from dpsql.bound.grid import Grid
from dpsql.bound.rows import Grids, UnitRows, keep
from dpsql.bound.sensitivity import WEIGHT_BITS, SameForAll, Sensitivity, has_cap
from dpsql.catalog.statistic import Rows, Statistic, Total, Units
from dpsql.exact import number
from dpsql.ir.statements import (
    Alias,
    CaseWhen,
    Cast,
    Fold,
    Name,
    Number,
    Op,
    Over,
    Query,
    Select,
    Term,
)
from dpsql.plan.nodes import Cells, Measurement

LENGTH_BITS = 40
"""Lengths are compared in at most ``2**LENGTH_BITS`` steps, so that sums of squares fit."""


@dataclass(frozen=True, slots=True)
class VectorClip(SameForAll):
    """A unit may be in all ``groups`` public groups; its vector of each statistic is bounded.

    The limits are powers of norms: the norm itself where ``norm`` is 1, its square where it is 2.
    Numbers of units have the limit ``units``, numbers of rows ``rows``. The limit ``worth`` is that
    of sums, in units of the most that one row adds.

    Claim: over all groups, the vector of a unit has at most the norm of its limit; counts are in
        steps of ``2**-bits``, numbers of units in steps of ``2**-unit_bits``.
    Assumes: the engine's doubles are those of IEEE 754.
    Argument: the number of a unit in each group is clamped to the limit. Then the whole vector gets
        one factor, at most the limit over the norm of what is left, and at most one. The norm is
        that of the very numbers that are scaled. It is taken of lengths that are rounded up. The
        factor is rounded down, and products are rounded toward zero, so no rounding adds to the
        norm. Where a unit cannot be in so many groups that its vector is too long, no factor is
        needed. Each statistic has a factor of its own, and noise of its own.
    """

    groups: int
    norm: Norm
    units: Fraction
    rows: Fraction
    worth: Fraction
    bits: int = WEIGHT_BITS
    size: int = 1
    name: ClassVar[str] = "vector clip"
    reads_units: ClassVar[bool] = True
    most_read: ClassVar[int | None] = None

    @property
    def bin_bits(self) -> int:
        """Values are not chosen under this strategy."""
        return self.bits

    @property
    def unit_bits(self) -> int:  # type: ignore[override]
        """Whole numbers of units, where no unit can exceed its limit."""
        return 0 if self._all_units_fit else self.bits

    @property
    def _all_units_fit(self) -> bool:
        """Whether no unit can be in so many groups that it exceeds its limit."""
        return self.units >= self.groups

    @property
    def rows_in_group(self) -> int:
        """No single number is above the norm of the vector."""
        return _root_up(self.rows, self.norm)

    @property
    def counts(self) -> Sensitivity:
        """The limit of numbers of rows."""
        return self._moved(self.rows)

    @property
    def counted_units(self) -> Sensitivity:
        """The limit of numbers of units, or the number of groups if it is smaller."""
        return self._moved(min(self.units, Fraction(self.groups)))

    @property
    def totals(self) -> Sensitivity:
        """The limit of sums."""
        return self._moved(self.worth)

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """What units add beyond the limits; nothing of numbers of units that cannot exceed them."""
        units = None if self._all_units_fit else self.units
        return (ShorterVectors(self.norm, units, self.rows, self.worth),)

    def touched(self, _: Cells | None) -> int:
        """All groups: the factor leaves out none."""
        return self.groups

    def bounds(self, statistic: Statistic) -> bool:
        """Numbers of units and rows, and sums of values, unless they have caps of their own."""
        return isinstance(statistic, Units | Rows | Total) and not has_cap(statistic)

    def keeps_all(self, _: int) -> bool:
        """It may scale down any unit with several rows."""
        return False

    def apply(self, measurement: Measurement, grids: Grids, rows: UnitRows) -> Query:
        """The sums of the scaled contributions of units: clamp, add up by unit, scale."""
        groups = by_unit(measurement, rows)
        limits = {}
        for i, (statistic, at) in enumerate(zip(measurement.statistics, grids, strict=True)):
            limit = self._limit(statistic, at)
            if limit is not None:
                limits[f"s{i}"] = limit
        names, of_unit = tuple(columns(groups)), tuple(map(Name, rows.units))
        clamped = [(name, _clamped(name, limits.get(name))) for name in names]
        kept = Alias(Select(Alias(groups, "l"), tuple(clamped)), "c")
        lengths = [
            (f"l{name[1:]}", Over(Fold("sum", self._length(Name(name), limit)), of_unit))
            for name, limit in limits.items()
        ]
        measured = Alias(Select(kept, (*keep(names), *lengths)), "m") if lengths else kept
        scaled = [(name, self._scaled(name, limits.get(name))) for name in names]
        return sum_units(measurement, self, grids, rows, Select(measured, tuple(scaled)), _whole)

    def _moved(self, power: Fraction) -> Sensitivity:
        """How far a vector with this power of its norm reaches: |v|_2 <= |v|_1 <= sqrt(k) |v|_2."""
        if self.norm == 1:
            return Sensitivity(power, power**2)
        return Sensitivity(Fraction(_root_up(self.groups * power * _FINE**2, 2), _FINE), power)

    def _limit(self, statistic: Statistic, at: Grid | None) -> _Limit | None:
        """The limit of a statistic in integers as the engine counts them; None: it needs none."""
        match statistic:
            case Units():
                return None if self._all_units_fit else self._limit_of(self.units, divided=False)
            case Rows():
                return self._limit_of(self.rows, divided=False)
            case _:
                assert at is not None, "others have queries of their own"
                return self._limit_of(self.worth * at.reach**self.norm, divided=True)

    def _limit_of(self, power: Fraction, *, divided: bool) -> _Limit:
        most = _root_up(power, self.norm)
        coarse = 0 if self.norm == 1 else max(0, most.bit_length() - LENGTH_BITS)
        return _Limit(power, most, coarse, divided)

    def _length(self, kept: Term, limit: _Limit) -> Term:
        """What a group adds to the power of the norm, in steps of ``2**coarse`` rounded up."""
        size: Term = Op("abs", (kept,))
        if limit.coarse:
            up = Op("+", (size, Number((1 << limit.coarse) - 1)))
            size = Op("//", (up, Number(1 << limit.coarse)))
        size = Cast(size, "hugeint")
        return size if self.norm == 1 else Op("*", (size, size))

    def _scaled(self, name: str, limit: _Limit | None) -> Term:
        """A number of a unit in a group, times the factor of the unit's vector."""
        if limit is None:
            return Name(name)
        factor = self.factor(limit, Name(f"l{name[1:]}"))
        scaled = Op("*", (Cast(Name(name), "hugeint"), factor))
        return Op("//", (scaled, Number(1 << self.bits))) if limit.divided else scaled

    def factor(self, limit: _Limit, length: Term) -> Term:
        """The factor of a unit, in steps of ``2**-bits``, from the power of its norm."""
        one = 1 << self.bits
        if self.norm == 1:
            most = math.floor(limit.power)
            share = Op("//", (Number(most * one), Op("greatest", (length, Number(1)))))
            return CaseWhen(((Op("<=", (length, Number(most))), Number(one)),), share)
        steps = limit.power / 4**limit.coarse
        root = math.isqrt(math.floor(steps * one**2))
        share = Op("/", (Number(root), Op("sqrt", (Cast(length, "double"),))))
        inside = Op("greatest", (Number(1), Op("least", (Number(one), Op("floor", (share,))))))
        less = Op("-", (Cast(inside, "bigint"), Number(1)))
        return CaseWhen(((Op("<=", (length, Number(math.floor(steps)))), Number(one)),), less)


@dataclass(frozen=True, slots=True)
class _Limit:
    """The ``power`` of a norm, and the ``most`` that one number may then be, both in steps.

    Lengths are counted in ``2**coarse`` steps. Products with a factor are ``divided`` by its steps.
    """

    power: Fraction
    most: int
    coarse: int
    divided: bool


_FINE = 10**4


def _clamped(name: str, limit: _Limit | None) -> Term:
    """A number of a unit in a group, no farther from zero than the limit of its vector."""
    if limit is None:
        return Name(name)
    low, high = Number(-limit.most), Number(limit.most)
    return Op("least", (Op("greatest", (Name(name), low)), high))


def _whole(_: Rows | Total, value: Term, __: Grid | None) -> Term:
    """The value unchanged: the factor has already bounded it."""
    return value


def _root_up(power: Fraction, norm: Norm) -> int:
    """The smallest whole number whose power is at least ``power``.

    >>> _root_up(Fraction(17, 2), 1), _root_up(Fraction(17, 2), 2)
    (9, 3)
    """
    whole = math.ceil(power)
    return whole if norm == 1 else math.isqrt(max(whole - 1, 0)) + (whole > 0)


def declared_clip(groups: int, norm: Norm, most: int, per_group: int) -> VectorClip:
    """The strategy that clips no unit with ``most`` rows, and ``per_group`` rows in a group.

    >>> clip = declared_clip(groups=10, norm=2, most=8, per_group=4)
    >>> int(clip.units), int(clip.rows)
    (8, 32)
    """
    full = min(Fraction(most, per_group), Fraction(groups))
    rows = full * per_group**norm  # full groups have the largest norm
    return VectorClip(groups, norm, Fraction(min(most, groups)), rows, rows)


def with_limits(declared: VectorClip, found: FoundLimits) -> VectorClip:
    """The strategy under limits that searches have found, where they are tighter."""
    norm = declared.norm

    def tighter(limit: Fraction, found: Fraction | None) -> Fraction:
        return limit if found is None else min(limit, found**norm)

    return replace(
        declared,
        units=tighter(declared.units, found.get("units", norm)),
        rows=tighter(declared.rows, found.get("rows", norm)),
        worth=tighter(declared.worth, found.get("worth", norm)),
    )


def norm_text(power: Fraction, norm: int) -> str:
    """A norm, from its power, with few digits.

    >>> norm_text(Fraction(8), 2), norm_text(Fraction(8), 1)
    ('2.82843', '8')
    """
    return number(power) if norm == 1 else f"{math.sqrt(power):.6g}"
