"""One row per unit: there is nothing to bound."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpsql.bound.caps import clamp
from dpsql.bound.cuts import Cut
from dpsql.bound.rows import Grids, UnitRows, keep
from dpsql.bound.sensitivity import SameForAll, Sensitivity, Strategy
from dpsql.catalog.statistic import Rows, Statistic, Total
from dpsql.ir.statements import Alias, CaseWhen, Fold, Number, Op, Query, Select, Term
from dpsql.plan.nodes import Cells, Measurement


@dataclass(frozen=True, slots=True)
class OneRow(SameForAll):
    """Each row belongs to a different unit.

    Claim: a unit has one row, and is in one group.
    Assumes: a unit has one row here (its key is unique).
    Argument: each row adds its clamped value, or one, to one group. Where an aggregate has a cap,
        the contribution of the unit's only row is clamped to it.
    """

    size: int = 1
    name: ClassVar[str] = "one row per unit"
    groups: ClassVar[int] = 1
    rows_in_group: ClassVar[int] = 1
    bits: ClassVar[int] = 0
    bin_bits: ClassVar[int] = 0
    reads_units: ClassVar[bool] = False
    most_read: ClassVar[int | None] = None

    @property
    def counts(self) -> Sensitivity:
        """One number moves by one."""
        return Sensitivity(Fraction(1), Fraction(1))

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """None: a unit is one row."""
        return ()

    def touched(self, _: Cells | None) -> int:
        """The group of its row."""
        return 1

    def bounds(self, _: Statistic) -> bool:
        """Every kind: a unit is one row."""
        return True

    def keeps_all(self, _: int) -> bool:
        """Nothing is bounded, so nothing is lost."""
        return True

    def apply(self, measurement: Measurement, grids: Grids, rows: UnitRows) -> Query:
        """The sums of each group. Groups that are not public need at least one row that counts."""
        return sum_groups(measurement, self, grids, rows)


def sum_groups(measurement: Measurement, bounding: Strategy, grids: Grids, rows: UnitRows) -> Query:
    """The sums of each group over unweighted rows."""
    items = [*keep(rows.keys)]
    for i, statistic in enumerate(measurement.statistics):
        items.append((f"p{i}", _sum(statistic, rows, i, bounding, grids)))
    having = None
    if measurement.cells is None:
        items.append(("units", rows.number))
        having = None if rows.kept is None else Op(">", (rows.number, Number(0)))
    return Select(Alias(rows.query, "r"), tuple(items), group=rows.keys, having=having)


def _sum(statistic: Statistic, rows: UnitRows, i: int, bounding: Strategy, grids: Grids) -> Term:
    where = rows.wheres[i]
    match statistic:
        case Rows(cap=cap) | Total(cap=cap) if cap is not None:
            inside = clamp(_single(statistic, rows, i), statistic, grids[i], bounding)
            return Op("coalesce", (Fold("sum", inside, rows.kept), Number(0)))
        case Total():
            return rows.value(i).total(where)
        case _:
            return Fold("count", where=where)


def _single(statistic: Rows | Total, rows: UnitRows, i: int) -> Term:
    """The contribution of a unit's only row."""
    where = rows.wheres[i]
    if isinstance(statistic, Total):
        value = rows.value(i).term
        return value if where is None else CaseWhen(((where, value),))
    return Number(1) if where is None else CaseWhen(((where, Number(1)),), Number(0))
