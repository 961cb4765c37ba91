"""Statements that weigh hardly a row and clamp no value, for data that keeps what the policy declares of it.

Row weights cost a count of each unit's rows in every query, caps on units a grouping by unit, bounds
on values two comparisons for each, as a rule only to find that nothing is beyond them. Whether a
table keeps its declarations does not depend on the query: it is looked up when a policy is opened,
never because of a question (``engines.verify``).

Claim: where the data is as ``Lighter`` asks, its statement gives the same integers as that of the
    measurement.
Assumes: declared keys are unique, which is verified before any question (``declarations.requirements``).
Argument: each row of the measurement comes from one row of one private table, and no two from the
    same (``prepared_rows.once``, given the keys). So no unit has more rows than in that table, where none
    has more than the limit: nobody is weighed down, and as no row adds more than its clamped value,
    what a unit adds is within its caps. Where some have more, no others can be above the limit in the
    measurement, whose rows are of theirs; what these have too much is found among the rows that are kept
    of them (``heavy``), and taken from the total. Every row there has its unit, found by keys that
    are unique, so that leaving out the path changes no row either.
    How values are added up changes no sum. A column whose values are all in its declared range is in
    that range in every row that has it, and values between the bounds are what they are clamped to. To
    take the centre off each row, or off the sum as often as there is a value, is the same. Doubles in
    steps are whole numbers of at most ``rows.LARGEST``. There are no more of them than the table has
    rows; in whatever order at most ``queries.FEW`` of them are added, all that comes between is below
    ``2**53``, and up to there every whole number is a double.

To add up whole numbers in 128 bits takes an engine longer than to add doubles, and so does to compare
each value with its bounds (over 10 million rows, in times of a plain SUM: 1.67 with both, 1.36 with
doubles, 1.19 where values need not be compared either).

What is released, and what it costs, is therefore the same. Only time tells which statement ran, and it
tells whether somebody is above a limit already: a join with nobody is over at once. Under strict
timing neither is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dpsql.bound import OneRow, PreparedRows, RowWeights
from dpsql.bound.copies import total_of
from dpsql.bound.drop_unit_path import hidden, looked_up
from dpsql.bound.reading import once, relation_to_read
from dpsql.bound.row_weights import subtract_excess, sum_rows
from dpsql.bound.rows import Light, read_rows
from dpsql.catalog.statistic import Rows, Statistic, Total
from dpsql.ir.expressions import Column, columns
from dpsql.ir.relations import Private, Relation, Scan, expressions, inputs, walk, with_inputs
from dpsql.ir.statements import CommonTable, Query
from dpsql.plan.nodes import Measurement
from dpsql.policy.companion import Shelf
from dpsql.price.priced import PricedMeasurement
from dpsql.rewrite.statement import ROWS, every_group, grids_of


@dataclass(frozen=True, slots=True)
class Lighter:
    """A measurement whose rows are added up as they are read, if the data is as declared.

    Needed: where it is ``spared`` weights, each row of the ``counted`` table has its unit, and no unit
    more of them than declared, or rows are weighed (``apart``) and those of all such units kept. Useful: that the table has no more rows than
    ``queries.FEW``, and that no value is outside its range. ``ranges`` are the totals of a column, by their
    positions.
    """

    part: PricedMeasurement
    relation: Relation
    counted: Scan
    spared: bool
    ranges: Mapping[int, tuple[str, str]]

    @property
    def apart(self) -> bool:
        """Whether rows of units with too many may be weighed alone."""
        return isinstance(self.part.bounding, RowWeights) and self.counted.copied is None

    def query(self, light: Light, heavy: str | None = None) -> Query:
        """The statement; ``light`` is what was found of the rows, ``heavy`` the name of those kept."""
        scan, relation = self.counted, self.relation
        measurement, bounding, grids = (
            self.part.measurement,
            self.part.bounding,
            grids_of(self.part),
        )
        if self.spared and scan.table.path:
            relation = _swapped(relation, scan, replace(scan, lean=True))
        rows = read_rows(measurement, looked_up(relation), grids, units=(), light=light)
        sums = sum_rows(measurement, bounding.bits, rows)
        if heavy is not None:
            assert isinstance(bounding, RowWeights), "no others are weighed apart"
            few = _swapped(self.relation, scan, replace(scan, heavy=heavy))
            apart = read_rows(measurement, looked_up(few), grids)
            apart = replace(apart, query=CommonTable(ROWS, apart.query))
            sums = subtract_excess(sums, measurement, bounding, grids, apart)
        return every_group(measurement, sums)


def lighter_of(part: PricedMeasurement) -> Lighter | None:
    """How the measurement may be asked more lightly; None where bounds decide what is added up."""
    bounding = part.bounding
    relation = relation_to_read(part.measurement, part.reading, bounding.most_read)
    scan = _counted(relation) if _summed(part.measurement) else None
    if scan is None:
        return None
    spared = not isinstance(bounding, OneRow | PreparedRows)
    allowed = not hidden(scan) & _named(relation)
    if spared and not (allowed and bounding.keeps_all(scan.table.max_rows_per_unit)):
        return None
    ranges = dict(_ranges(part.measurement.statistics, relation))
    return Lighter(part, relation, scan, spared, ranges)


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
