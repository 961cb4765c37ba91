"""The identity of a measurement: equal for the same rows, groups and statistics under other names.

Claim: equal identities mean that one release answers both.
Assumes: nothing about the data; equal trees of functions and relations have equal results.
Argument: columns are numbered by their first appearance, so aliases and the order of binding do not
    matter. Everything else that the engine will read is compared as it is, SELECT by SELECT.
    Operators that only pass columns on are not part of a SELECT.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import assert_never

from dpsql.catalog.statistic import Rows, Statistic, Units, Values
from dpsql.ir import relations as ir
from dpsql.ir.expressions import Column, Expression, Literal, Parameter, Shape, substitute
from dpsql.ir.relations import Relation, inputs, with_arguments, with_expressions, with_inputs
from dpsql.plan.nodes import Measurement
from dpsql.policy.types import Kind


def identity(measurement: Measurement) -> Hashable:
    """A value that equal measurements share."""
    numbering = _Numbering()
    rows = _open(numbering.relation(measurement.input))
    privacy, cells = measurement.privacy, measurement.cells
    return (
        rows.value,
        tuple(rows.read(numbering.expression(key)) for key in measurement.keys),
        tuple(_statistic(s, numbering, rows) for s in measurement.statistics),
        tuple(rows.known(numbering.all(component)) for component in privacy.key),
        None if cells is None else cells.identity,
        privacy.max_rows,
        measurement.terms,
    )


def _statistic(statistic: Statistic, numbering: _Numbering, rows: _Select) -> Hashable:
    def read(node: Expression | None) -> Expression | None:
        return None if node is None else rows.read(numbering.expression(node))

    kept = read(statistic.where)
    if isinstance(statistic, Rows | Units):
        return type(statistic), kept, getattr(statistic, "cap", None)
    if isinstance(statistic, Values):
        return type(statistic), tuple(map(read, statistic.values)), kept
    others = (getattr(statistic, f.name) for f in fields(statistic)[1:] if f.name != "where")
    return type(statistic), read(statistic.value), tuple(others), kept


@dataclass(slots=True)
class _Numbering:
    """Columns in order of first appearance; constants by value and kind."""

    numbers: dict[int, int] = field(default_factory=dict)

    def column(self, column: Column) -> Column:
        """The column under its number here; only columns of tables have names."""
        return replace(self.stored(column), name="")

    def stored(self, column: Column) -> Column:
        number = self.numbers.setdefault(column.number, len(self.numbers))
        return replace(column, number=number)

    def all(self, component: Iterable[int]) -> list[int]:
        return [self.numbers[n] for n in component if n in self.numbers]

    def expression(self, node: Expression) -> Expression:
        return substitute(node, self._atom)

    def _atom(self, node: Expression) -> Expression | None:
        match node:
            case Column():
                return self.column(node)
            case Literal() | Parameter():
                return replace(node, shape=Shape(node.shape.kind))
            case _:
                return None

    def relation(self, relation: Relation) -> Relation:
        below = tuple(self.relation(r) for r in inputs(relation))
        relation = with_expressions(with_inputs(relation, below), self.expression)
        if isinstance(relation, ir.Scan):
            own = tuple(map(self.stored, relation.fields))
            return replace(
                relation, fields=own, unit_fields=tuple(map(self.stored, relation.unit_fields))
            )
        own = tuple(map(self.column, relation.fields))
        if isinstance(relation, ir.Union):
            columns = tuple(tuple(map(self.column, side)) for side in relation.columns)
            return replace(relation, fields=own, columns=columns)
        return replace(relation, fields=own)


@dataclass(frozen=True, slots=True)
class _Select:
    """One SELECT: its columns, the rows that are read and kept, and the last operations on them.

    ``computed`` says that some columns are not plain columns of its sources. Operators above then
    read the SELECT as a source, as they do if its rows are grouped, sorted or cut (``last``).
    """

    items: Mapping[int, Hashable]
    source: Hashable
    where: tuple[Hashable, ...] = ()
    last: Mapping[str, Hashable] = field(default_factory=dict)
    computed: bool = False

    @property
    def value(self) -> Hashable:
        """A value that is equal only for SELECTs with the same rows."""
        return (
            tuple(sorted(self.items.items(), key=lambda item: item[0])),
            self.source,
            self.where,
            tuple(self.last.items()),
        )

    def read(self, node: Expression) -> Expression:
        """An expression over the SELECT's columns, written over the columns of its sources."""
        return substitute(node, self._item)

    def _item(self, node: Expression) -> Expression | None:
        if not isinstance(node, Column):
            return None
        item = self.items[node.number]
        assert isinstance(item, Column), "nothing is computed in what is open"
        return item

    def known(self, numbers: Iterable[int]) -> Hashable:
        return frozenset(self.items[n] for n in numbers if n in self.items)

    def ending(self, **last: Hashable) -> _Select:
        """The SELECT with further last operations."""
        return replace(self, last={**self.last, **last})


def _column(number: int) -> Column:
    return Column(number, "", Shape(Kind.NULL))


def _sealed(select: _Select) -> _Select:
    """The SELECT as a source with plain columns."""
    return _Select({n: _column(n) for n in select.items}, select.value)


def _open(relation: Relation) -> _Select:
    """A SELECT to which conditions, groups or new columns may be added."""
    select = _select(relation)
    return _sealed(select) if select.last or select.computed else select


def _of(name: str, columns: Iterable[Column], *parts: Hashable) -> _Select:
    """A SELECT of all columns of one source."""
    shown = {c.number: replace(c, name="") for c in columns}
    kinds = tuple((c.number, c.name, c.shape.kind) for c in columns)
    return _Select(shown, (name, kinds, *parts))


def _select(relation: Relation) -> _Select:  # noqa: C901 (one arm for each relation)
    """The relation as one SELECT, as far as the order of SQL's clauses allows."""
    match relation:
        case ir.Scan():
            return _scan(relation)
        case ir.Values(fields=own, rows=rows):
            return _of("values", own, rows)
        case ir.Stored(name=name, fields=own, given=given):
            return _of("stored", own, name, given)
        case ir.Filter(input=below, predicate=predicate):
            select = _open(below)
            return replace(select, where=(*select.where, select.read(predicate)))
        case ir.Project():
            return _project(relation)
        case ir.Aggregate():
            return _aggregate(relation)
        case ir.Join():
            return _join(relation)
        case ir.Union():
            return _union(relation)
        case ir.Windowed(input=below, windows=windows, fields=own, read=read):
            select = _open(below)
            items = {n: c for n, c in select.items.items() if read is None or n in read}
            new = own[len(below.fields) :]
            items |= {f.number: select.read(w) for f, w in zip(new, windows, strict=True)}
            return replace(select, items=items, computed=True)
        case ir.Distinct(input=below, fields=own):
            select = _select(below)
            select = _sealed(select) if select.last else select
            kept = {f.number: ("key", select.items[f.number]) for f in own}
            return replace(select, items=kept, computed=True).ending(distinct=True)
        case ir.Sort(input=below, keys=keys):
            select = _open(below)
            return select.ending(order=tuple(replace(k, value=select.read(k.value)) for k in keys))
        case ir.Limit(input=below, count=count, offset=offset):
            select = _select(below)
            select = _sealed(select) if "limit" in select.last else select
            return select.ending(limit=(count, offset))
        case _:
            assert_never(relation)


def _scan(scan: ir.Scan) -> _Select:
    owners = () if scan.skip_unit_path else scan.unit_fields
    own = {c.number: c for c in (*owners, *scan.fields)}
    private = isinstance(scan.privacy, ir.Private)
    kept = (scan.skip_unit_path, scan.copied, scan.over_limit_rows, private)
    return _of("table", own.values(), scan.table.name, *kept)


def _project(project: ir.Project) -> _Select:
    select = _select(project.input)
    if select.computed or select.last.keys() & {"distinct", "limit"}:
        select = _sealed(select)
    made = {f.number: select.read(v) for f, v in zip(project.fields, project.values, strict=True)}
    computed = not all(isinstance(value, Column) for value in project.values)
    return replace(select, items={**select.items, **made}, computed=computed)


def _aggregate(aggregate: ir.Aggregate) -> _Select:
    select = _open(aggregate.input)
    keys = tuple(("key", select.read(key)) for key in aggregate.keys)
    calls = (with_arguments(call, select.read) for call in aggregate.calls)
    items = {f.number: v for f, v in zip(aggregate.fields, (*keys, *calls), strict=True)}
    return replace(select, items=items, computed=True).ending(group=(keys, aggregate.sets))


def _join(join: ir.Join) -> _Select:
    left, right = _side(join.left), _side(join.right)
    shown = {f.number for f in join.right.fields}
    items = {**left.items, **right.items}
    items |= {f.number: left.items[f.number] for f in join.left.fields if f.number not in shown}
    both = _Select(items, None)
    on = None if join.condition is None else both.read(join.condition)
    kept = left.items if join.kind in ("semi", "anti") else items
    return _Select(kept, (join.kind, left.source, right.source, on), left.where + right.where)


def _side(relation: Relation) -> _Select:
    select = _select(relation)
    plain = not select.last and not select.computed and not select.where
    joins = isinstance(relation, ir.Scan | ir.Stored | ir.Join)
    return select if plain and joins else _sealed(select)


def _union(union: ir.Union) -> _Select:
    sides = []
    for position, side in enumerate(union.inputs):
        select = _select(side)
        select = _sealed(select) if select.last else select
        columns = union.columns[position] if union.columns else side.fields[: len(union.fields)]
        shown = tuple(select.items[c.number] for c in columns)
        sides.append((shown, select.source, select.where))
    return _of("union", union.fields, union.operation, tuple(sides))
