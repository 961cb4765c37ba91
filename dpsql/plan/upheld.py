"""Statements that weigh hardly a row and clamp no value, for data that keeps what the policy declares of it.

Row weights cost a count of each unit's rows in every query, caps on units a grouping by unit, bounds
on values two comparisons for each, as a rule only to find that nothing is beyond them. Whether a
table keeps its declarations does not depend on the query: it is looked up once for as long as a
file is open and cannot change (``engines.upheld``).

Claim: where the data is as ``Lighter`` asks, its statement gives the same integers as that of the
    measurement.
Argument: each row of the measurement comes from one row of one private table, and no two from the
    same (``prepared.once``, given the keys). So no unit has more rows than in that table, where none
    has more than the limit: nobody is weighed down, and as no row adds more than its clamped value,
    what a unit adds is within its caps. Where some have more, no others can be above the limit in the
    measurement, whose rows are of theirs; what these have too much is found among the rows that are kept
    of them (``heavy``), and taken from the total. Every row there has its unit, found by keys that
    are unique, so that leaving out the path changes no row either. How values are added up changes
    no sum (``plan.added``): there are no more of them than the table has rows, and a column whose
    values are all in its declared range is in that range in every row that has it.

What is released, and what it costs, is therefore the same. Only time tells which statement ran, and it
tells whether somebody is above a limit already: a join with nobody is over at once. Under strict
timing neither is done.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.aggregates.statistic import Rows, Statistic, Total
from dpsql.plan.added import FEW, Light
from dpsql.plan.bounding import Bounding
from dpsql.plan.copies import total_of
from dpsql.plan.grid import ends
from dpsql.plan.looked_up import hidden
from dpsql.plan.nodes import Measurement
from dpsql.plan.prepared import once
from dpsql.plan.priced import PricedMeasurement
from dpsql.plan.statement import unweighed
from dpsql.plan.written import grids_of
from dpsql.policy.companion import Shelf, key_of
from dpsql.policy.model import Table
from dpsql.policy.types import Kind
from dpsql.policy.version import digest
from dpsql.sql.blocks import Block, Writer
from dpsql.sql.expressions import Column, Shape, columns
from dpsql.sql.relations import Private, Relation, Scan, expressions, inputs, walk, with_inputs
from dpsql.sql.render import double, quoted

MOST_KEPT = 1_000_000
"""Rows of units with more of them than declared, that an engine keeps of a table."""


@dataclass(frozen=True, slots=True)
class Lighter:
    """A measurement whose rows are added up as they are read, if the data is as declared.

    Needed: of ``keyed`` tables no two rows share the key, and, where it is ``spared`` weights, each row
    of the ``counted`` table has its unit, and no unit more of them than declared, or rows are weighed
    (``apart``) and those of all such units kept. Useful: that the table has no more rows than
    ``added.FEW``, and that no value is outside its range. ``ranges`` are the totals of a column, by their
    positions.
    """

    part: PricedMeasurement
    relation: Relation
    counted: Scan
    keyed: frozenset[str]
    spared: bool
    ranges: Mapping[int, tuple[str, str]]

    @property
    def apart(self) -> bool:
        """Whether rows of units with too many may be weighed alone."""
        return self.part.bounding.name == "row weights" and self.counted.copied is None

    def sql(self, light: Light, heavy: str | None = None) -> str:
        """The statement; ``light`` is what was found of the rows, ``heavy`` the name of those kept."""
        part, scan, relation, few = self.part, self.counted, self.relation, None
        if heavy is not None:
            few = _swapped(relation, scan, replace(scan, heavy=heavy))
        if self.spared and scan.table.path:
            relation = _swapped(relation, scan, replace(scan, lean=True))
        return unweighed(part.measurement, part.bounding, grids_of(part), relation, light, few)


def lighter_of(part: PricedMeasurement) -> Lighter | None:
    """How the measurement may be asked more lightly; None where bounds decide what is added up."""
    bounding = part.bounding
    relation = _read(part)
    scan = _counted(relation) if _summed(part.measurement) else None
    if scan is None:
        return None
    keyed = {s.table.name for s in _private(relation) if s is not scan and key_of(s.table)}
    spared = not (bounding.ranked or bounding.name == "one row per unit")
    allowed = not hidden(scan) & _named(relation)
    if spared and not (allowed and _spares(bounding, scan.table.max_rows_per_unit)):
        return None
    ranges = dict(_ranges(part.measurement.statistics, relation))
    return Lighter(part, relation, scan, frozenset(keyed), spared, ranges)


def _read(part: PricedMeasurement) -> Relation:
    """The rows as the measurement's own statement reads them."""
    if part.reading is None:
        return part.measurement.input
    if not part.bounding.ranked:
        return part.reading.relation
    assert part.bounding.rows is not None
    return part.reading.limited(int(part.bounding.rows))


def _ranges(
    statistics: tuple[Statistic, ...], relation: Relation
) -> Iterator[tuple[int, tuple[str, str]]]:
    """Totals of a private column whose declared range is within their bounds."""
    scans = [s for s in _private(relation) if s.copied is None]
    held = {f.number: (s.table, f.name) for s in scans for f in s.fields}
    for i, total in enumerate(statistics):
        if not isinstance(total, Total) or not isinstance(total.value, Column):
            continue
        table, name = held.get(total.value.number, (None, ""))
        declared = None if table is None else total_of(table.columns[name])
        if declared is not None and total.low <= declared.low and declared.high <= total.high:
            assert table is not None
            yield i, (table.name, name)


def _summed(measurement: Measurement) -> bool:
    """Whether all that is asked are sums over the rows of public groups."""
    known = measurement.cells is not None and measurement.lifted is None
    return known and all(map(_is_sum, measurement.statistics))


def _is_sum(statistic: Statistic) -> bool:
    match statistic:
        case Rows(cap=None) | Total(cap=None, averaged=False):
            return True
        case _:
            return False


def _spares(bounding: Bounding, most: int) -> bool:
    """Whether a unit with so many rows loses nothing: no row of it weighs less, no group is cut."""
    limits = [n for n in (bounding.rows, bounding.per_group) if n is not None]
    cut = bounding.valued or bounding.limit or bounding.norm is not None
    return bool(limits) and not cut and all(n >= most for n in limits)


def _private(relation: Relation) -> list[Scan]:
    parts = walk(relation)
    return [s for s in parts if isinstance(s, Scan) and isinstance(s.privacy, Private)]


def _counted(relation: Relation) -> Scan | None:
    """The table each row comes from one row of, if there is one."""
    scans = _private(relation)
    shelf = Shelf(keyed=frozenset(s.table.name for s in scans))
    return next((s for s in scans if s.unit_fields and once(relation, s, shelf)), None)


def _named(relation: Relation) -> set[int]:
    """The columns that conditions and computed values anywhere name."""
    return {c.number for r in walk(relation) for e in expressions(r) for c in columns(e)}


def _swapped(relation: Relation, scan: Scan, other: Scan) -> Relation:
    """The relation with another scan in the place of one."""
    if relation is scan:
        return other
    return with_inputs(relation, tuple(_swapped(r, scan, other) for r in inputs(relation)))


def too_many(table: Table) -> str:
    """A query that has a row if a unit has more rows than declared."""
    return f"SELECT 1 AS v FROM ({_many_of(table)}) AS b LIMIT 1"


def crowded(table: Table) -> str:
    """A query that has a row if units with more rows than declared have too many to be kept."""
    return f"SELECT 1 AS v FROM ({_many_of(table)}) AS b HAVING sum(n) > {MOST_KEPT}"


def ownerless(table: Table) -> str:
    """A query that has a row if the path leads some row to no unit."""
    block, _ = _rows(table)
    return (
        f"SELECT 1 AS v FROM (SELECT count(*) AS n{block.tail()}) AS b"
        f" WHERE n <> (SELECT count(*) FROM {quoted(table.name)})"
    )


def heavy(table: Table) -> tuple[str, str]:
    """A name, and a query for all rows of units with more rows than declared."""
    block, units = _rows(table)
    key = [block.items[f.number] for f in units]
    own, other = ", ".join(key), ", ".join(f"u{i}" for i in range(len(key)))
    if len(key) > 1:
        own, other = f"row({own})", f"row({other})"
    path = table.path[0].columns if table.path else table.unit_columns
    names = dict.fromkeys([*table.columns, *path])
    sql = (
        f"SELECT {', '.join(f't1.{quoted(n)}' for n in names)}{block.tail()}"
        f" AND {own} IN (SELECT {other} FROM ({_many_of(table)}) AS b)"
    )
    return f"{table.name} {digest([sql])}", sql


def _many_of(table: Table) -> str:
    """Units with more rows than declared, and how many."""
    block, units = _rows(table)
    key = [block.items[f.number] for f in units]
    named = ", ".join(f"{text} AS u{i}" for i, text in enumerate(key))
    return (
        f"SELECT {named}, count(*) AS n{block.tail()} GROUP BY {', '.join(key)}"
        f" HAVING count(*) > {table.max_rows_per_unit}"
    )


def beyond(table: Table, column: str) -> str:
    """A query that has a row if a value of the column is outside its declared range."""
    declared = total_of(table.columns[column])
    assert declared is not None, "it has a range"
    if table.columns[column].kind is Kind.INTEGER:
        low, high = str(math.ceil(declared.low)), str(math.floor(declared.high))
    else:
        low, high = (double(Fraction(end)) for end in ends(declared))
    items, tail = _alone(table)
    value = items[column]
    return f"SELECT 1 AS v{tail} WHERE NOT ({value} >= {low} AND {value} <= {high}) LIMIT 1"


def many(table: Table) -> str:
    """A query that has a row if the table has more rows than are added up as doubles."""
    return f"SELECT 1 AS v FROM {quoted(table.name)} HAVING count(*) > {FEW}"


def shared_key(table: Table) -> str:
    """A query that has a row if two rows share the table's key, as a query's joins read it."""
    items, tail = _alone(table)
    return _twice(tail, [items[name] for name in key_of(table)])


def shared_steps(table: Table) -> Iterator[str]:
    """Queries that have a row if two rows share a key on the path to the unit, as it is followed."""
    for step in table.path:
        yield _twice(f" FROM {quoted(step.references)}", [quoted(name) for name in step.key])


def _twice(tail: str, key: list[str]) -> str:
    return f"SELECT 1 AS v{tail} GROUP BY {', '.join(key)} HAVING count(*) > 1 LIMIT 1"


def _alone(table: Table) -> tuple[Mapping[str, str], str]:
    """All rows of a table, with those that nobody owns: its columns, and where they are from."""
    block, _ = _rows(replace(table, path=(), unit_columns=()))
    return {f.name: block.items[f.number] for f in _fields(table)}, block.tail()


def _rows(table: Table) -> tuple[Block, tuple[Column, ...]]:
    """The rows of a table with the key of their unit, as plans read them."""
    fields = _fields(table)
    own = {f.name: f for f in fields}
    units = tuple(
        Column(len(fields) + i, name, Shape(Kind.NULL, False)) if table.path else own[name]
        for i, name in enumerate(table.unit_columns)
    )
    assert table.unit is not None
    key = tuple(frozenset({f.number}) for f in units)
    return Writer().open(Scan(table, fields, units, Private(table.unit, key, 1))), units


def _fields(table: Table) -> tuple[Column, ...]:
    return tuple(
        Column(i, c.name, Shape(c.kind, c.nullable)) for i, c in enumerate(table.columns.values())
    )
