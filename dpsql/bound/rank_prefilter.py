"""A unit's first groups, found among rows that are likely to be in them.

A unit keeps its first ``groups`` groups in the order of its draws. To put all groups of all units in
order costs several times what grouping them does. So a first pass over the rows marks, for
each unit, which of ``PLACES`` equal parts of the order its groups begin in; from the marks follows
how far a unit's first groups can reach, and only rows up to there are grouped and put in order.

Claim: a unit's first groups in ``few`` and ``many`` are its first groups among all rows, with all
    of their rows.
Assumes: the limit is a number of groups, and rows are the same in each place that reads them.
Argument: a unit with no more rows than the limit has no more groups. For the others, a marked part
    has one of the unit's groups at least; where ``groups`` parts up to some part are marked, so
    many groups or more are up to there, and every group behind them comes later in the order. All
    groups up to there are ranked, so the first of them are the first of all.

What a unit keeps depends on the salt and its own rows, whether the marks are right or wrong: the
number of a unit's groups is bounded by their rank, and by the number of rows where there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpsql.bound.row_weights import KeepsGroups
from dpsql.bound.rows import UnitRows, keep
from dpsql.ir.statements import (
    Alias,
    CaseWhen,
    Cast,
    DrawPart,
    Fold,
    From,
    JoinUsing,
    Name,
    Number,
    Op,
    Query,
    Select,
    Term,
)
from dpsql.plan.nodes import Measurement

PLACES = 64
_BITS = (PLACES - 1).bit_length()
_COARSER = 1.15
"""Between one part that is tried and the next."""
_USEFUL = 2
"""Rows are marked where there are more groups than this times what a unit keeps."""


@dataclass(frozen=True, slots=True)
class Prefilter:
    """Rows of a measurement whose units keep so many groups.

    ``marked`` says whether rows are looked at for how far first groups reach: where a unit may have
    many more groups than it keeps.
    """

    bounding: KeepsGroups
    rows: UnitRows
    marked: bool

    def few(self) -> From:
        """Rows of units that have so few that all their groups are kept; each weighs one."""
        many = Alias(units_above(self.bounding.groups, self.rows), "m")
        return JoinUsing("anti", Alias(self.rows.query, "r"), many, self.rows.units)

    def many(self) -> tuple[From, tuple[Term, ...]]:
        """The other rows, and the condition that they are up to where first groups reach.

        They have their ``weight``, if rows have one.
        """
        joined = JoinUsing(
            "inner", Alias(self.rows.query, "r"), Alias(self._heavy(), "w"), self.rows.units
        )
        if not self.marked:
            return joined, ()
        return joined, (Op("<=", (Cast(self._part, "bigint"), Name("reach"))),)

    @property
    def _part(self) -> Term:
        """The part of the order that a row's group is in."""
        return DrawPart(self.rows.draw, _BITS)

    def _heavy(self) -> Query:
        """Units above the limit: how far their first groups reach, and what their rows weigh."""
        rows, bounding = self.rows, self.bounding
        counted, found = [("rows", Fold("count"))], [*keep(rows.units)]
        if self.marked:
            one = Cast(Number(1), "hugeint")
            counted.append(("marks", Fold("bit_or", Op("<<", (one, self._part)))))
            found.append(("reach", _reach(bounding.groups)))
        weights = bounding.weights
        if weights is not None:
            share = Op("//", (Number(int(weights.rows) << weights.bits), Name("rows")))
            found.append(("weight", Op("least", (Number(1 << weights.bits), share))))
        inner = units_above(bounding.groups, rows, *counted)
        return Select(Alias(inner, "q"), tuple(found))


def units_above(limit: int, rows: UnitRows, *items: tuple[str, Term]) -> Query:
    """Units with more rows than a limit, and what is computed of them."""
    more = Op(">", (Fold("count"), Number(limit)))
    return Select(
        Alias(rows.query, "r"), (*keep(rows.units), *items), group=rows.units, having=more
    )


def separable(measurement: Measurement, bounding: KeepsGroups, rows: UnitRows) -> bool:
    """Whether units above the limit are handled apart from the others.

    Under strict timing they are not: how many there are would be seen. Where no unit that is as
    declared has so many groups, hardly any has to be looked for.
    """
    weights = bounding.weights
    fits = weights is None or (not weights.valued and weights.rows >= bounding.groups)
    above = bounding.limit and bounding.groups < measurement.privacy.max_rows
    return above and fits and rows.steady and not rows.strict


def prefilter(measurement: Measurement, bounding: KeepsGroups, rows: UnitRows) -> Prefilter | None:
    """Units above the limit apart from the others; None where all of them need an order."""
    if not separable(measurement, bounding, rows):
        return None
    cells = measurement.cells
    most = PLACES if cells is None else min(PLACES, cells.count // _USEFUL)
    return Prefilter(bounding, rows, bounding.groups < most)


def _reach(groups: int) -> Term:
    """The last part that a unit's first groups can be in."""
    marks = Name("marks")
    tried = tuple(
        (
            Op(">=", (Op("bit_count", (Op("&", (marks, Number((1 << p) - 1))),)), Number(groups))),
            Number(p - 1),
        )
        for p in _parts(groups)
    )
    return CaseWhen(tried, Number(PLACES - 1))


def _parts(groups: int) -> Iterator[int]:
    """Numbers of parts that are tried, from the fewest that can have so many groups."""
    part = groups
    while part < PLACES:
        yield part
        part = max(part + 1, int(part * _COARSER))
