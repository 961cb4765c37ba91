"""The rows of a measurement, as every strategy reads them: unit, keys, conditions, clamped values.

Each of these is a column, computed once. Statistics that need the same share a column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpsql.bound.grid import Grid, grid_ends, is_whole
from dpsql.catalog.statistic import Statistic, Total
from dpsql.ir.expressions import Column, Expression
from dpsql.ir.relations import Filter, Join, Project, Relation, Scan, Sort, Stepped, written_columns
from dpsql.ir.statements import (
    Cast,
    Draw,
    Fold,
    From,
    Items,
    KeyValue,
    Name,
    Number,
    Op,
    Query,
    Read,
    RowValue,
    Steps,
    Term,
)
from dpsql.plan.nodes import Measurement
from dpsql.plan.steady import steady
from dpsql.plan.ties import break_ties

Grids = tuple[Grid | None, ...]
LARGEST = 1 << 26
"""Values of at most this many steps may be added up as doubles."""
FEW = 130_000_000
"""The values of at most this many rows may be added up as doubles: see ``rewrite.shortcut``."""


@dataclass(frozen=True, slots=True)
class DataFacts:
    """Known facts about the rows.

    ``few``: there are at most ``FEW`` rows. ``within``: positions of the totals whose values are
    all within their bounds.
    """

    few: bool = False
    within: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Value:
    """The clamped value of a total: a column minus a constant; ``doubles``: added up as doubles."""

    column: str
    less: int = 0
    doubles: bool = False

    @property
    def term(self) -> Term:
        """The value of a row."""
        return _less(Name(self.column), Number(self.less)) if self.less else Name(self.column)

    def total(self, where: Term | None) -> Term:
        """The sum over rows where a condition holds; zero for none."""
        added: Term = Op("coalesce", (Fold("sum", Name(self.column), where), Number(0)))
        added = Cast(added, "hugeint") if self.doubles else added
        if not self.less:
            return added
        number = Cast(Fold("count", Name(self.column), where), "hugeint")
        return _less(added, Op("*", (Number(self.less), number)))


def _less(term: Term, other: Term) -> Term:
    return Op("-", (term, other))


@dataclass(frozen=True, slots=True)
class SplitRows:
    """Rows of units that keep all groups (``few``), and of units that need an order (``many``).

    Of ``many``, only rows for which the conditions ``where`` hold can be in a kept group. These
    rows have a column ``weight``, if rows are weighted.
    """

    few: From
    many: From
    where: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitRows:
    """Rows with their columns: ``units``, ``keys``, and those that each statistic needs.

    Under strict timing, rows for which ``kept`` does not hold are read but do not count (None: all
    rows count). ``steady`` rows are the same wherever a statement reads them. ``split`` gives the
    rows in two parts, where that is cheaper than ordering all groups of all units.
    """

    query: Query
    relation: Relation
    units: tuple[str, ...]
    keys: tuple[str, ...]
    wheres: tuple[Term | None, ...]
    values: tuple[Value | None, ...]
    steady: bool
    strict: bool = False
    kept: Term | None = None
    split: SplitRows | None = None

    @property
    def number(self) -> Fold:
        """The number of rows that count."""
        return Fold("count", where=self.kept)

    @property
    def draw(self) -> Draw:
        """The random number by which the groups of a unit are ordered."""
        return Draw(tuple(map(Name, (*self.units, *self.keys))))

    @property
    def order(self) -> tuple[Term, ...]:
        """An order of each unit's groups that depends only on the salt and the unit's own rows."""
        return (self.draw, *map(Name, self.keys))

    def value(self, position: int) -> Value:
        """The value of a total."""
        found = self.values[position]
        assert found is not None, "a total has a value"
        return found


def keep(names: tuple[str, ...]) -> Items:
    """Columns as they are."""
    return tuple((name, Name(name)) for name in names)


def read_rows(
    measurement: Measurement, relation: Relation, grids: Grids, kept: Column | None = None,
    units: tuple[Column, ...] | None = None, others: Items | None = None, facts: DataFacts = DataFacts(),
) -> UnitRows:  # fmt: skip
    """The columns of a measurement, read from a relation that has its rows.

    ``units`` replaces the units of the plan. ``facts`` is given only where rows are just added up.
    """
    known = steady(relation)
    relation = break_ties(relation, measurement)
    if units is None:
        units = tuple(_first(c, relation) for c in measurement.privacy.key)
    columns = _Columns(relation, kept, facts)
    owners = columns.add("u", map(RowValue, units))
    keys = columns.add("k", map(KeyValue, measurement.keys))
    pairs = list(zip(measurement.statistics, grids, strict=True)) if others is None else []
    wheres = tuple(columns.where(s) for s, _ in pairs)
    values = tuple(columns.value(s, g, i) for i, (s, g) in enumerate(pairs))
    flag = None if kept is None else Name(columns.share("f", RowValue(kept)))
    query = Read(relation, (*columns.items, *(others or ())))
    return UnitRows(query, relation, owners, keys, wheres, values, known, kept=flag)


def _first(numbers: frozenset[int], relation: Relation) -> Column:
    """The column of the rows that holds a part of the unit's key, the first where several do."""
    there = written_columns(relation)
    return there[min(numbers & there.keys())]


@dataclass(slots=True)
class _Columns:
    """Collects the columns of a query; equal terms share one name."""

    relation: Relation
    kept: Column | None
    facts: DataFacts
    items: list[tuple[str, Term]] = field(default_factory=list)
    centres: dict[Steps, int] = field(default_factory=dict)

    def add(self, letter: str, terms: Iterable[Term]) -> tuple[str, ...]:
        """Numbered columns, one for each term."""
        found = [(f"{letter}{i}", term) for i, term in enumerate(terms)]
        self.items += found
        return tuple(name for name, _ in found)

    def share(self, letter: str, term: Term) -> str:
        """The column of a term; the same one for equal terms."""
        same = [(name, known) for name, known in self.items if name.startswith(letter)]
        for name, known in same:
            if known == term:
                return name
        self.items.append((f"{letter}{len(same)}", term))
        return self.items[-1][0]

    def where(self, statistic: Statistic) -> Term | None:
        """The condition on rows that count for a statistic; None: all rows count."""
        found = condition(statistic, self.kept)
        return None if found is None else Name(self.share("f", found))

    def value(self, statistic: Statistic, grid: Grid | None, i: int) -> Value | None:
        if not isinstance(statistic, Total):
            return None
        assert grid is not None
        held = _held(self.relation, statistic.value, grid)
        if held is not None:
            return Value(self.share("v", RowValue(held.column)), grid.centre)
        steps = steps_of(statistic, grid)
        inside, doubles = i in self.facts.within, self.facts.few and _is_small(grid)
        if inside or doubles:
            doubles = doubles and not (inside and steps.whole)
            centre, steps = steps.centre, replace(steps, centre=0, inside=inside, doubles=doubles)
            return Value(self.share("v", steps), centre, doubles)
        centre = self.centres.setdefault(replace(steps, centre=0), steps.centre)
        return Value(self.share("v", replace(steps, centre=centre)), steps.centre - centre)


def _is_small(grid: Grid) -> bool:
    """Whether values are so small that ``FEW`` of them add up as doubles without rounding."""
    return max(abs(grid.low), abs(grid.high)) <= LARGEST


def condition(statistic: Statistic, kept: Column | None) -> Term | None:
    """The condition on rows of a relation that count for a statistic; None: all rows count."""
    parts = tuple(RowValue(e) for e in (statistic.where, kept) if e is not None)
    return parts[0] if len(parts) == 1 else Op("and", parts) if parts else None


def steps_of(total: Total, at: Grid) -> Steps:
    """The clamped value of a total, in steps of its grid."""
    whole = is_whole(total, at)
    low, high = (at.low, at.high) if whole else grid_ends(total)
    return Steps(
        total.value, Fraction(low), Fraction(high), at.shift, at.low, at.high, at.centre, whole
    )


def _held(relation: Relation, value: Expression, at: Grid) -> Stepped | None:
    """The column of a prepared copy that holds a value clamped on this very grid."""
    scan, number = _origin(relation, value)
    for stepped in () if scan is None or scan.copied is None else scan.copied.stepped:
        steps = stepped.steps
        if stepped.of == number and (steps.shift, steps.low, steps.high) == (
            at.shift, at.low, at.high,
        ):  # fmt: skip
            return stepped
    return None


def _origin(relation: Relation, value: Expression) -> tuple[Scan | None, int]:
    """The scan that a column comes from, with no operator between that hides the scan's columns."""
    number = value.number if isinstance(value, Column) else -1
    match relation:
        case Scan(fields=fields) if number in {f.number for f in fields}:
            return relation, number
        case Filter(input=below) | Sort(input=below):
            return _origin(below, value)
        case Project(input=below, fields=fields, values=values):
            computed = {f.number: v for f, v in zip(fields, values, strict=True)}
            return _origin(below, computed.get(number, value))
        case Join(left=left, right=right):
            scan, found = _origin(left, value)
            if scan is not None or relation.kind in ("semi", "anti"):
                return scan, found
            return _origin(right, value)
        case _:
            return None, number
