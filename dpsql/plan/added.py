"""What a row adds to each statistic, and how rows are added up.

To add up whole numbers in 128 bits takes an engine longer than to add doubles, and so does to compare
each value with its bounds (over 10 million rows, in times of a plain SUM: 1.67 with both, 1.36 with
doubles, 1.19 where values need not be compared either).

Claim: ``up`` gives the same whole number with every ``Light``, where what that says is so.
Argument: to take the centre off each row, or off the sum as often as there is a value, is the same.
    Values between the bounds are what they are clamped to. Doubles in steps are whole numbers of at
    most ``LARGEST``; in whatever order at most ``FEW`` of them are added, all that comes between is
    below ``2**53``, and up to there every whole number is a double.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsql.catalog.statistic import Rows, Statistic, Total, Units
from dpsql.plan.grid import Grid, clamped, doubled, is_whole, stepped
from dpsql.plan.stages import Source
from dpsql.sql.render import expression

LARGEST, FEW = 1 << 26, 130_000_000
"""The most steps of a row, and the most rows, that are added up as doubles."""


@dataclass(frozen=True, slots=True)
class Light:
    """What is known of the rows: there are ``few``, and of which totals all values are ``within`` bounds."""

    few: bool = False
    within: frozenset[int] = frozenset()


NOTHING = Light()


@dataclass(frozen=True, slots=True)
class _Sum:
    """How a total is added up: ``text`` for each row, from which ``off`` is taken already.

    Totals that are ``alike`` differ in their centre at most. ``counted`` has a value where the
    text has one.
    """

    text: str
    alike: str
    off: int = 0
    doubles: bool = False
    counted: str = ""

    def up(self, kept: str, centre: int) -> str:
        """The total less ``centre`` for each value."""
        total = f"coalesce(sum({self.text}){kept}, 0)"
        total = f"CAST({total} AS HUGEINT)" if self.doubles else total
        if self.off == centre:
            return total
        number = f"CAST(count({self.counted or self.text}){kept} AS HUGEINT)"
        return f"{total} + {self.off - centre} * {number}"


@dataclass(frozen=True, slots=True)
class Added:
    """What each statistic needs of one row: a condition, or a clamped value less its centre."""

    wheres: tuple[str | None, ...]
    values: tuple[str | None, ...]
    centres: tuple[int, ...]
    sums: tuple[_Sum | None, ...]

    def up(self, i: int, statistic: Statistic) -> str:
        """The statistic over all rows of a group."""
        kept = filtered(self.wheres[i])
        match statistic:
            case Rows() | Units():
                return f"count(*){kept}"
            case _:  # a total; others have statements of their own
                return self._twin(i).up(kept, self.centres[i])

    def _twin(self, i: int) -> _Sum:
        """The first sum of the same clamped values over the same rows."""
        pairs = [(s and s.alike, where) for s, where in zip(self.sums, self.wheres, strict=True)]
        found = self.sums[pairs.index(pairs[i])]
        assert found is not None, "a total has a sum"
        return found

    def named(self, table: str = "") -> Added:
        """The same over rows that hold conditions and values as columns."""
        wheres = tuple(w and f"{table}f{i}" for i, w in enumerate(self.wheres))
        values = tuple(v and f"{table}v{i}" for i, v in enumerate(self.values))
        sums = tuple(
            None if s is None or v is None else _Sum(v, s.alike, centre)
            for s, v, centre in zip(self.sums, values, self.centres, strict=True)
        )
        return Added(wheres, values, self.centres, sums)


def added(
    statistics: tuple[Statistic, ...], grids: tuple[Grid | None, ...], rows: Source,
    light: Light = NOTHING,
) -> Added:  # fmt: skip
    """What the statistics need of each row; ``light`` where it is only added up."""
    pairs = list(zip(statistics, grids, strict=True))
    return Added(
        tuple(rows.where(s.where) for s in statistics),
        tuple(_value(s, g, rows) for s, g in pairs),
        tuple(0 if g is None else g.centre for g in grids),
        tuple(_sum(s, g, rows, light, i) for i, (s, g) in enumerate(pairs)),
    )


def filtered(condition: str | None) -> str:
    """What counts only the rows of a condition."""
    return "" if condition is None else f" FILTER (WHERE {condition})"


def _value(statistic: Statistic, grid: Grid | None, rows: Source) -> str | None:
    if not isinstance(statistic, Total):
        return None
    assert grid is not None
    text = expression(statistic.value, rows.block.items)
    held = rows.steps(text, grid)
    if held is None:
        return clamped(text, statistic, grid)
    return f"{held} - {grid.centre}" if grid.centre else held


def _sum(
    statistic: Statistic, grid: Grid | None, rows: Source, light: Light, i: int
) -> _Sum | None:
    if not isinstance(statistic, Total):
        return None
    assert grid is not None
    text = expression(statistic.value, rows.block.items)
    held = rows.steps(text, grid)
    if held is not None:
        return _Sum(held, held)
    doubles = light.few and max(abs(grid.low), abs(grid.high)) <= LARGEST
    if i in light.within:
        doubles = doubles and not is_whole(statistic, grid)
        steps = stepped(text, statistic, grid, doubles=doubles)
        return _Sum(steps, steps, doubles=doubles, counted=text)
    if doubles:
        steps = doubled(text, statistic, grid)
        return _Sum(steps, steps, doubles=True)
    alike = clamped(text, statistic, replace(grid, centre=0))
    return _Sum(clamped(text, statistic, grid), alike, grid.centre)
