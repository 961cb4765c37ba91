"""Cheaper statements, valid only while the data keeps its declarations.

Row weights need a count of each unit's rows in every query. Caps on units need a grouping by unit.
Bounds on values need two comparisons for each value. As a rule all this only finds that nothing
exceeds the bounds. Whether a table keeps its declarations does not depend on the query. It is
looked up when a policy is opened, never because of a question (``engines.verify``), and
``engines.statement_chooser`` chooses by it.

Claim: where the data is as an alternative requires, it gives the same integers as the measurement's
    own statement.
Assumes: declared keys are unique, which is verified before any question
    (``declarations.requirements``).
Argument: each row of the measurement comes from one row of one private table, and no two of them
    come from the same row (``reading.once``, given the keys). So a unit has no more rows in the
    measurement than in that table. If no unit has more than the limit there, no row's weight is
    reduced; and as no row adds more than its clamped value, what a unit adds is within its caps. If
    some units have more than the limit in the table, only these can be above it in the measurement.
    All rows of these units are kept; their excess is computed from the kept rows, and subtracted
    from the total (``subtract_excess``). Every row of the table has its unit, found by unique keys,
    so leaving out the path changes no row either. The way in which values are added up changes no
    sum. If all values of a column are in its declared range, they are in that range in every row
    that reads the column, and clamping changes no value between the bounds. Subtracting the centre
    from each row gives the same as subtracting it from the sum once for each value. Doubles in
    steps are whole numbers of at most ``rows.LARGEST``, and there are no more of them than the
    table has rows. In whatever order at most ``rows.FEW`` of them are added, each intermediate sum
    is below ``2**53``, and every whole number up to there is a double.

An engine takes longer to add whole numbers in 128 bits than to add doubles, and longer where it
compares each value with its bounds (over 10 million rows, in times of a plain SUM: 1.67 with both,
1.36 with doubles, 1.19 with doubles and no comparison).

The released values and their cost are therefore the same. Only the running time tells which
statement ran. The measurement's own statement already tells in this way whether some unit is above
a limit, because a join with no such unit ends at once. Under strict timing there are neither
alternatives nor a separate treatment of units above the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dpsql.bound import OneRow, PreparedRows, RowWeights
from dpsql.bound.copies import total_of
from dpsql.bound.reading import once
from dpsql.bound.row_weights import subtract_excess, sum_rows
from dpsql.bound.rows import FEW, DataFacts, UnitRows, read_rows
from dpsql.catalog.statistic import Rows, Statistic, Total
from dpsql.ir.alternatives import (
    Alternative,
    FewRows,
    OverLimitRowsKept,
    Requirement,
    RowsHaveUnits,
    UnitsWithinLimit,
    ValuesInRange,
)
from dpsql.ir.expressions import Column, columns
from dpsql.ir.relations import (
    Private,
    Relation,
    Scan,
    expressions,
    inputs,
    walk_relations,
    with_inputs,
)
from dpsql.ir.statements import CommonTable, Query
from dpsql.plan.nodes import Measurement
from dpsql.plan.steady import is_computed
from dpsql.policy.prepared_copies import PreparedCopies, over_limit_name
from dpsql.rewrite.draft import ROWS, Draft, every_group
from dpsql.rewrite.drop_unit_path import find_path_columns

Ways = tuple[tuple[bool, bool], ...]
"""Pairs: whether a table has few rows, and whether all values are in their ranges."""
WAYS: Ways = ((True, True), (False, True), (True, False), (False, False))
WAYS_OVER_LIMIT: Ways = ((True, True), (False, False))
"""The ways for data that breaks a limit on rows. So there are at most six alternatives."""


@dataclass(frozen=True, slots=True)
class Shortcut:
    """A measurement whose rows are added up as they are read, if the data is as declared.

    If rows are ``spared`` weights, each row of the ``counted`` table must have its unit, and no
    unit may have more of these rows than declared; or else the rows of all units above the limit
    are kept and weighed ``apart``. ``ranges`` has the table and column of each total of a column,
    by the total's position.
    """

    draft: Draft
    counted: Scan
    spared: bool
    ranges: Mapping[int, tuple[str, str]]

    @property
    def apart(self) -> bool:
        """Whether rows of units with too many rows may be weighed apart from the others."""
        weighed = isinstance(self.draft.bounding, RowWeights)
        return self.spared and weighed and self.counted.copied is None

    def alternatives(self) -> Iterator[Alternative]:
        """The statements that may run instead of the measurement's own, the cheapest first."""
        table, apart = self.counted.table, None
        owned: tuple[Requirement, ...] = ()
        within: tuple[Requirement, ...] = ()
        if self.spared:
            owned = (RowsHaveUnits(table.name),) if table.path else ()
            most = table.max_rows_per_unit
            several = most > 1  # that a unit has one row only is verified
            within = (UnitsWithinLimit(table.name, most),) if several else ()
            apart = OverLimitRowsKept(table.name, most, over_limit_name(table)) if several else None
        yield from self._listed((*owned, *within), WAYS, None)
        if self.apart and apart is not None:
            yield from self._listed((*owned, apart), WAYS_OVER_LIMIT, apart.name)

    def _listed(
        self, first: tuple[Requirement, ...], ways: Ways, over_limit: str | None
    ) -> Iterator[Alternative]:
        """Alternatives that differ in how values are added up.

        Of equal statements, only the one with the fewest requirements is listed.
        """
        relation, known = self._unweighed(), list[tuple[UnitRows, tuple[Requirement, ...]]]()
        for few, inside in ways:
            requires = (*first, *self._of_values(few=few, inside=inside))
            facts = DataFacts(few, frozenset(self.ranges if inside else ()))
            rows = self.rows(facts, relation)
            known = [pair for pair in known if pair[0] != rows]
            known.append((rows, requires))
        for rows, requires in known:
            if requires or self.spared:  # else it is the measurement's own
                yield Alternative(requires, self.query(rows, over_limit))

    def _of_values(self, *, few: bool, inside: bool) -> Iterator[Requirement]:
        if few:
            yield FewRows(self.counted.table.name, FEW)
        if inside:
            yield from (ValuesInRange(*at) for at in dict.fromkeys(self.ranges.values()))

    def _unweighed(self) -> Relation:
        """The rows, without the path to their units if no weight is computed."""
        scan, relation = self.counted, self.draft.rows.relation
        if self.spared and scan.table.path:
            return _swapped(relation, scan, replace(scan, skip_unit_path=True))
        return relation

    def rows(self, facts: DataFacts, relation: Relation) -> UnitRows:
        """The rows of a relation of which these facts are known."""
        draft = self.draft
        return read_rows(draft.measurement, relation, draft.grids, units=(), facts=facts)

    def query(self, rows: UnitRows, over_limit: str | None = None) -> Query:
        """The statement that adds up these rows.

        ``over_limit`` is the name of the kept rows of units above the limit.
        """
        measurement, bounding = self.draft.measurement, self.draft.bounding
        sums = sum_rows(measurement, bounding.bits, rows)
        if over_limit is not None:
            assert isinstance(bounding, RowWeights), "no others are weighed apart"
            few = _swapped(
                self.draft.rows.relation,
                self.counted,
                replace(self.counted, over_limit_rows=over_limit),
            )
            apart = read_rows(measurement, few, self.draft.grids)
            apart = replace(apart, query=CommonTable(ROWS, apart.query))
            sums = subtract_excess(sums, measurement, bounding, self.draft.grids, apart)
        return every_group(measurement, sums)


def shortcut(draft: Draft) -> Draft:
    """The draft with the alternatives that may run instead of its statement."""
    found = shortcut_of(draft)
    if found is None:
        return draft
    alternatives = tuple(found.alternatives())
    return replace(draft, alternatives=alternatives) if alternatives else draft


def shortcut_of(draft: Draft) -> Shortcut | None:
    """The shortcut of the measurement; None where bounds decide what is added up.

    What is known of a computed view was found in another reading of it, so its rows have none.
    """
    bounding, relation = draft.bounding, draft.rows.relation
    if is_computed(relation):
        return None
    summed = draft.whole and draft.statistic is None and _summed(draft.measurement)
    scan = _counted(relation) if summed else None
    if scan is None:
        return None
    spared = not isinstance(bounding, OneRow | PreparedRows)
    allowed = not find_path_columns(scan) & _named(relation)
    if spared and not (allowed and bounding.keeps_all(scan.table.max_rows_per_unit)):
        return None
    return Shortcut(draft, scan, spared, dict(_ranges(draft.measurement.statistics, relation)))


def _ranges(
    statistics: tuple[Statistic, ...], relation: Relation
) -> Iterator[tuple[int, tuple[str, str]]]:
    """Positions of totals of a private column whose declared range is within the total's bounds."""
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
    """Whether all statistics are sums over the rows of public groups."""
    known = measurement.cells is not None and measurement.lifted is None
    return known and all(map(_is_sum, measurement.statistics))


def _is_sum(statistic: Statistic) -> bool:
    match statistic:
        case Rows(cap=None) | Total(cap=None, averaged=False):
            return True
        case _:
            return False


def _private(relation: Relation) -> list[Scan]:
    parts = walk_relations(relation)
    return [s for s in parts if isinstance(s, Scan) and isinstance(s.privacy, Private)]


def _counted(relation: Relation) -> Scan | None:
    """The private table such that each row comes from a different row of it, if there is one."""
    scans = _private(relation)
    shelf = PreparedCopies(keyed=frozenset(s.table.name for s in scans))
    return next((s for s in scans if s.unit_fields and once(relation, s, shelf)), None)


def _named(relation: Relation) -> set[int]:
    """The numbers of all columns that conditions and computed values name."""
    return {c.number for r in walk_relations(relation) for e in expressions(r) for c in columns(e)}


def _swapped(relation: Relation, scan: Scan, other: Scan) -> Relation:
    """The relation with one scan replaced by another."""
    if relation is scan:
        return other
    return with_inputs(relation, tuple(_swapped(r, scan, other) for r in inputs(relation)))
