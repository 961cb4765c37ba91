"""A unit's first groups, found among rows that are likely to be in them.

A unit keeps its first ``groups`` groups in the order of ``stages.salted``. To put all groups of all
units in order costs several times what grouping them does. So a first pass over the rows marks, for
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

from dpsql.plan.bounding import Bounding
from dpsql.plan.nodes import Measurement
from dpsql.plan.stages import Source, above, draw, group_by, listed, named

PLACES = 64
_BITS = 64 - (PLACES - 1).bit_length()
"""How far a hash of 64 bits is moved so that it is below ``PLACES``."""
_COARSER = 1.15
"""Between one part that is tried and the next."""
_USEFUL = 2
"""Rows are marked where there are more groups than this times what a unit keeps."""


@dataclass(frozen=True, slots=True)
class Leading:
    """Rows of a measurement whose units keep so many groups.

    ``base`` is rows with unit and keys, as a FROM item. ``marked`` says whether rows are looked at
    for how far first groups reach: where a unit may have many more groups than it keeps.
    """

    bounding: Bounding
    rows: Source
    base: str
    marked: bool

    def few(self) -> str:
        """Rows of units that have so few that all their groups are kept; each weighs one."""
        many = f"({above(self.bounding.groups, self.rows)}) AS m USING ({self._units})"
        return f"{self.base} ANTI JOIN {many}"

    def many(self) -> str:
        """The other rows up to where first groups reach; with their ``weight``, if rows have one."""
        joined = f"{self.base} JOIN ({self._heavy()}) AS w USING ({self._units})"
        if not self.marked:
            return joined
        return f"{joined} WHERE CAST({_part(self.rows)} AS BIGINT) <= reach"

    @property
    def _units(self) -> str:
        return listed("u", self.rows.units)

    def _heavy(self) -> str:
        """Units above the limit: how far their first groups reach, and what their rows weigh."""
        rows, bounding = self.rows, self.bounding
        marks, found = "", [self._units]
        if self.marked:
            marks = f", bit_or(1::HUGEINT << ({_part(rows)})) AS marks"
            found.append(f"{_reach(bounding.groups)} AS reach")
        if bounding.rows is not None:
            most = f"({bounding.rows}::BIGINT << {bounding.bits})"
            found.append(f"least({1 << bounding.bits}, {most} // rows) AS weight")
        items = ", ".join((*named("u", rows.units), *(named("k", rows.keys) if marks else ())))
        return (
            f"SELECT {', '.join(found)} FROM (SELECT {self._units}, count(*) AS rows{marks}"
            f" FROM (SELECT {items}{rows.block.tail()}) AS b"
            f"{group_by(len(rows.units))} HAVING count(*) > {bounding.groups}) AS q"
        )


def separable(measurement: Measurement, bounding: Bounding, rows: Source) -> bool:
    """Whether units above the limit are handled apart from the others.

    Under strict timing they are not: how many there are would be seen. Where no unit that is as
    declared has so many groups, hardly any has to be looked for.
    """
    fits = bounding.rows is None or (not bounding.valued and bounding.rows >= bounding.groups)
    above = bounding.limit and bounding.groups < measurement.privacy.max_rows
    return above and fits and rows.steady and not rows.strict and bounding.norm is None


def leading(
    measurement: Measurement, bounding: Bounding, rows: Source, base: str
) -> Leading | None:
    """Units above the limit apart from the others; None where all of them need an order."""
    if not separable(measurement, bounding, rows):
        return None
    cells = measurement.cells
    most = PLACES if cells is None else min(PLACES, cells.count // _USEFUL)
    return Leading(bounding, rows, base, bounding.groups < most)


def _part(rows: Source) -> str:
    """The part of the order that a row's group is in: the first bits of what decides the order."""
    return f"{draw(rows.units, rows.keys)} >> {_BITS}"


def _reach(groups: int) -> str:
    """The last part that a unit's first groups can be in."""
    tried = (
        f" WHEN bit_count(marks & {(1 << part) - 1}) >= {groups} THEN {part - 1}"
        for part in _parts(groups)
    )
    return f"CASE{''.join(tried)} ELSE {PLACES - 1} END"


def _parts(groups: int) -> Iterator[int]:
    """Numbers of parts that are tried, from the fewest that can have so many groups."""
    part = groups
    while part < PLACES:
        yield part
        part = max(part + 1, int(part * _COARSER))
