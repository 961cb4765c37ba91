"""When two measurements are one: the same rows, groups and statistics under other names.

Claim: equal identities mean that one release answers both. Columns are numbered by where they
first appear, so that aliases and the order of binding do not matter; everything else that the
engine will see is compared as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace

from dpsql.catalog.statistic import Rows, Statistic, Units, Values
from dpsql.ir.expressions import Column, Expression, substitute
from dpsql.ir.relations import (
    Relation,
    Scan,
    Union,
    inputs,
    with_expressions,
    with_inputs,
)
from dpsql.plan.nodes import Measurement
from dpsql.sql.blocks import Writer
from dpsql.sql.render import expression


def identity(measurement: Measurement) -> object:
    """A value that equal measurements share."""
    numbering = _Numbering()
    relation = numbering.relation(measurement.input)
    block = Writer().open(relation)
    keys = [expression(numbering.expression(k), block.items) for k in measurement.keys]
    statistics = [_statistic(s, numbering, block.items) for s in measurement.statistics]
    units = [
        sorted(block.items[n] for n in _known(numbering, c) if n in block.items)
        for c in measurement.privacy.key
    ]
    cells = None if measurement.cells is None else measurement.cells.identity
    items = sorted(block.items.items())
    asked = measurement.privacy.max_rows, measurement.terms
    return repr((block.tail(), items, keys, statistics, units, cells, asked))


def _known(numbering: _Numbering, component: Iterable[int]) -> list[int]:
    return [numbering.numbers[n] for n in component if n in numbering.numbers]


def _statistic(statistic: Statistic, numbering: _Numbering, items: dict[int, str]) -> object:
    where = statistic.where
    kept = None if where is None else expression(numbering.expression(where), items)
    if isinstance(statistic, Rows | Units):
        return type(statistic).__name__, kept, getattr(statistic, "cap", None)
    if isinstance(statistic, Values):
        values = [expression(numbering.expression(v), items) for v in statistic.values]
        return type(statistic).__name__, values, kept
    value = expression(numbering.expression(statistic.value), items)
    others = [getattr(statistic, f.name) for f in fields(statistic)[1:] if f.name != "where"]
    return type(statistic).__name__, value, others, kept


@dataclass(slots=True)
class _Numbering:
    """Columns in order of first appearance, all of one name."""

    numbers: dict[int, int] = field(default_factory=dict)

    def column(self, column: Column) -> Column:
        number = self.numbers.setdefault(column.number, len(self.numbers))
        return replace(column, number=number, name=column.name)

    def expression(self, node: Expression) -> Expression:
        return substitute(node, lambda n: self.column(n) if isinstance(n, Column) else None)

    def relation(self, relation: Relation) -> Relation:
        below = tuple(self.relation(r) for r in inputs(relation))
        relation = with_expressions(with_inputs(relation, below), self.expression)
        physical = isinstance(relation, Scan)
        fields = tuple(self._field(f, physical=physical) for f in relation.fields)
        if isinstance(relation, Scan):
            owners = tuple(self.column(f) for f in relation.unit_fields)
            return replace(relation, fields=fields, unit_fields=owners)
        if isinstance(relation, Union):
            columns = tuple(tuple(self.column(c) for c in side) for side in relation.columns)
            return replace(relation, fields=fields, columns=columns)
        return replace(relation, fields=fields)

    def _field(self, column: Column, *, physical: bool) -> Column:
        """A table's columns keep their names; names that the analyst gave do not matter."""
        column = self.column(column)
        return column if physical else replace(column, name="c")
