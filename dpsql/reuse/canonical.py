"""The question of a measurement, as canonical text that does not depend on how it was written.

Claim: measurements of equal text have the same exact answer on every database. Aliases, column
numbers, formatting, the order of conditions, of inner joins and of their sides, and subqueries that
only rename or filter do not change the text. Everything else that may change the answer is in it.
Assumes: expressions are total functions of one row, and the policy and the data version are the
same.
Argument: filters, projections and inner joins are collected into one block: a bag of sources and a
bag of conditions. All conditions are total functions of one row, so neither order matters, and
computed columns may be replaced by their definitions. Every source is named by its position among
the sorted texts of sources. Every other operator is written with all its fields. An unknown form
raises ``NotCanonical``, and the caller then uses the statement itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import assert_never

from dpsql.catalog.statistic import Statistic
from dpsql.catalog.statistic import Values as Different
from dpsql.ir.expressions import (
    Aggregated,
    Call,
    Case,
    Column,
    Expression,
    Frame,
    FrameEnd,
    Interval,
    Literal,
    Parameter,
    Subquery,
    Window,
    conjuncts,
    substitute,
)
from dpsql.ir.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Limit,
    Project,
    Relation,
    Scan,
    Sort,
    Stored,
    Union,
    Values,
    Windowed,
)
from dpsql.plan.contents import content
from dpsql.plan.nodes import Measurement

_EITHER_WAY = frozenset({"eq", "and", "or"})
"""Functions whose arguments may be swapped."""


class NotCanonical(Exception):
    """A form for which this module has no canonical text."""


@dataclass(slots=True)
class _Block:
    """Sources and conditions without an order, and the meaning of each column number.

    ``columns`` gives, for each column of a source, the source and the column's name there.
    ``values`` are expressions over these columns, and so are the conditions.
    """

    sources: dict[int, str] = field(default_factory=dict)
    columns: dict[int, tuple[int, str]] = field(default_factory=dict)
    values: dict[int, Expression] = field(default_factory=dict)
    conditions: list[Expression] = field(default_factory=list)

    def over_sources(self, node: Expression) -> Expression:
        """The expression with computed columns replaced by their definitions."""
        if not self.values:
            return node
        return substitute(
            node, lambda n: self.values.get(n.number) if isinstance(n, Column) else None
        )

    def require(self, condition: Expression | None) -> None:
        """Add a condition on the rows."""
        if condition is not None:
            self.conditions += map(self.over_sources, conjuncts(condition))

    def names(self) -> dict[int, str]:
        """The name of each column, by the position of its source among the sorted sources.

        Sources of equal text stay in the order of the query.
        """
        order = sorted(self.sources, key=lambda n: (self.sources[n], n))
        places = {number: place for place, number in enumerate(order)}
        return {n: f"#{places[source]}.{name}" for n, (source, name) in self.columns.items()}

    def writer(self) -> Callable[[Expression], str]:
        """A function that gives the canonical text of an expression over columns of the block."""
        names = self.names()
        return lambda node: _expression(self.over_sources(node), names)

    def all_columns(self) -> dict[int, str]:
        """The canonical text of every column."""
        names = self.names()
        return names | {n: _expression(value, names) for n, value in self.values.items()}

    def text(self) -> str:
        """The text of the whole block: rows of all sources joined, where all conditions hold."""
        conditions = sorted(set(map(self.writer(), self.conditions)))
        return _words("rows", *sorted(self.sources.values()), "where", *conditions)


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a measurement in canonical text, part by part.

    ``values`` are the keys, and ``conditions`` the conditions by their text, both as expressions
    over columns of sources. ``text`` gives the canonical text of any expression over these columns.
    """

    sources: str
    conditions: Mapping[str, Expression]
    keys: tuple[str, ...]
    values: tuple[Expression, ...]
    statistics: tuple[str, ...]
    unit: str
    text: Callable[[Expression], str] = field(compare=False)

    def words(self, chosen: tuple[int, ...]) -> str:
        """The canonical text of the question, with only the ``chosen`` statistics."""
        return _words(
            self.sources, "where", *sorted(self.conditions), "by", *self.keys,
            "of", *(self.statistics[i] for i in chosen), "unit", self.unit,
        )  # fmt: skip


def question(measurement: Measurement) -> Question:
    """A measurement in canonical text: its rows, groups, statistics, and the unit of the rows."""
    block = _Canon().block(measurement.input)
    text, columns, privacy = block.writer(), block.all_columns(), measurement.privacy
    units = [sorted(columns[n] for n in part if n in columns) for part in privacy.key]
    if not all(units):
        raise NotCanonical
    values = tuple(map(block.over_sources, measurement.keys))
    return Question(
        _words("rows", *sorted(block.sources.values())),
        {text(condition): condition for condition in block.conditions},
        tuple(map(text, values)),
        values,
        tuple(_statistic(s, text) for s in measurement.statistics),
        _words(privacy.unit, repr(units), repr((privacy.max_rows, privacy.per_group))),
        text,
    )


def _statistic(statistic: Statistic, text: Callable[[Expression], str]) -> str:
    """A statistic with all its fields: expressions by canonical text, others by their repr."""
    parts = []
    for item in fields(statistic):
        value = getattr(statistic, item.name)
        if isinstance(statistic, Different) and item.name == "values":
            parts.append(_words(*map(text, value)))
            continue
        if item.name == "extra_bits" and value == 0:
            continue  # releases stored by earlier versions were named without it
        parts.append(text(value) if isinstance(value, Expression) else repr(value))
    return _words(type(statistic).__name__, *parts)


def _words(*parts: str) -> str:
    """Parts in brackets, each with its length, so that different parts never give the same text."""
    return "(" + " ".join(f"{len(part)}:{part}" for part in parts) + ")"


def _expression(node: Expression, names: Mapping[int, str]) -> str:
    """The text of an expression over named columns; arguments are sorted if order has no effect."""

    def text(part: Expression | None) -> str:
        return "always" if part is None else _expression(part, names)

    match node:
        case Column(number=number):
            if number not in names:
                raise NotCanonical
            return names[number]
        case Literal(value=value, shape=shape):
            return f"'{value!r} {shape.kind.value}"
        case Interval(count=count, unit=unit):
            return f"'{count} {unit}"
        case Call(function=name, args=args, option=option, shape=shape):
            written = [text(arg) for arg in _flat(name, args)]
            head = f"{name} {option} {shape.kind.value}"
            return _words(head, *(sorted(written) if name in _EITHER_WAY else written))
        case Case(whens=whens, otherwise=otherwise, shape=shape):
            parts = [part for when in whens for part in when]
            return _words(f"case {shape.kind.value}", *map(text, (*parts, otherwise)))
        case Window():
            frame = _frame(node.frame)
            head = f"window {node.function} {node.distinct} {node.shape.kind.value} {frame}"
            order = (
                _words(f"key {k.descending} {k.nulls_first}", text(k.value)) for k in node.order
            )
            return _words(
                head, _words("args", *map(text, node.args)),
                _words("partition", *map(text, node.partition)), _words("order", *order),
                text(node.where),
            )  # fmt: skip
        case Subquery() | Parameter():
            raise NotCanonical
        case _:
            assert_never(node)


def _frame(frame: Frame | None) -> str:
    """A frame, in the form that stored releases are named with."""
    if frame is None:
        return ""
    ends = (_frame_end(end) for end in (frame.start, frame.end))
    return f"{frame.unit.upper()} BETWEEN {' AND '.join(ends)}"


def _frame_end(end: FrameEnd) -> str:
    far = "UNBOUNDED" if end.distance is None else str(end.distance)
    return "CURRENT ROW" if end.side == "current row" else f"{far} {end.side.upper()}"


def _flat(name: str, args: tuple[Expression, ...]) -> Iterator[Expression]:
    """The arguments of nested ANDs or ORs as one list."""
    for arg in args:
        if name in ("and", "or") and isinstance(arg, Call) and arg.function == name:
            yield from _flat(name, arg.args)
        else:
            yield arg


class _Canon:
    """Builds the blocks of one measurement, and numbers its sources."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def block(self, relation: Relation) -> _Block:  # noqa: C901 (one arm for each relation)
        """The relation as one block."""
        match relation:
            case Scan():
                return self._scan(relation)
            case Filter(input=below, predicate=predicate):
                block = self.block(below)
                block.require(predicate)
                return block
            case Project(input=below, values=values, fields=fields):
                block = self.block(below)
                written = map(block.over_sources, values)
                block.values |= {f.number: v for f, v in zip(fields, list(written), strict=True)}
                return block
            case Sort(input=below):
                return self.block(below)  # rows have no order below the frontier
            case Join(kind="inner" | "cross"):
                return self._inner(relation)
            case Join():
                return self._outer(relation)
            case Aggregate():
                return self._aggregate(relation)
            case Windowed():
                return self._windowed(relation)
            case Distinct(input=below, fields=fields):
                block = self.block(below)
                shown = map(block.writer(), fields)
                columns = {f.number: f"d{i}" for i, f in enumerate(fields)}
                return self._source(_words("distinct", block.text(), *shown), columns)
            case Union():
                return self._union(relation)
            case Values(fields=fields, rows=rows):
                kinds = tuple(f.shape.kind.value for f in fields)
                columns = {f.number: f"v{i}" for i, f in enumerate(fields)}
                return self._source(_words("values", repr(kinds), repr(rows)), columns)
            case Limit() | Stored():
                raise NotCanonical
            case _:
                assert_never(relation)

    def _source(self, text: str, columns: Mapping[int, str]) -> _Block:
        """A block of one source with these columns."""
        number = next(self._numbers)
        return _Block({number: text}, {n: (number, name) for n, name in columns.items()})

    def _scan(self, scan: Scan) -> _Block:
        state = type(scan.privacy).__name__
        text = _words("table", scan.table.name, str(scan.skip_unit_path), state, *content(scan))
        columns = {f.number: f"{f.name} {f.shape.kind.value}" for f in scan.fields}
        owners = {f.number: f"{f.name} of the unit" for f in scan.unit_fields}
        return self._source(text, {**owners, **columns})

    def _inner(self, join: Join) -> _Block:
        left, right = self._sides(join)
        block = _Block(
            left.sources | right.sources,
            left.columns | right.columns,
            left.values | right.values,
            left.conditions + right.conditions,
        )
        block.require(join.condition)
        return block

    def _sides(self, join: Join) -> tuple[_Block, _Block]:
        left, right = self.block(join.left), self.block(join.right)
        numbers = [block.columns.keys() | block.values.keys() for block in (left, right)]
        if numbers[0] & numbers[1]:
            raise NotCanonical
        return left, right

    def _outer(self, join: Join) -> _Block:
        """A block with one source, made of the texts of both sides, with the columns of both."""
        sides = self._sides(join)
        left, right = (
            {n: _words(word, text) for n, text in block.all_columns().items()}
            for block, word in zip(sides, "lr", strict=True)
        )
        on = [] if join.condition is None else conjuncts(join.condition)
        conditions = sorted(_expression(c, left | right) for c in on)
        text = _words(join.kind, *(block.text() for block in sides), *conditions)
        return self._source(text, left if join.kind in ("semi", "anti") else left | right)

    def _aggregate(self, aggregate: Aggregate) -> _Block:
        block = self.block(aggregate.input)
        text = block.writer()
        calls = (_call(call, text) for call in aggregate.calls)
        keys = map(text, aggregate.keys)
        found = _words("groups", block.text(), repr(aggregate.sets), *keys, "of", *calls)
        columns = {f.number: f"g{i}" for i, f in enumerate(aggregate.fields)}
        return self._source(found, columns)

    def _windowed(self, windowed: Windowed) -> _Block:
        """A block with one source: windows read the rows at this point, so a block ends here."""
        block = self.block(windowed.input)
        found = list(map(block.writer(), windowed.windows))
        new = windowed.fields[len(windowed.fields) - len(found) :]
        text = _words("windows", block.text(), *found)
        made = {f.number: f"w{i}" for i, f in enumerate(new)}
        return self._source(text, {**block.all_columns(), **made})

    def _union(self, union: Union) -> _Block:
        sides = []
        width = len(union.fields)
        for i, below in enumerate(union.inputs):
            block = self.block(below)
            mine = union.columns[i] if union.columns else below.fields[:width]
            sides.append(_words(block.text(), *map(block.writer(), mine)))
        columns = {f.number: f"u{i} {f.shape.kind.value}" for i, f in enumerate(union.fields)}
        return self._source(_words(union.operation, *sides), columns)


def _call(call: Aggregated, text: Callable[[Expression], str]) -> str:
    head = f"{call.function} {call.distinct} {call.option} {call.shape.kind.value}"
    where = "always" if call.where is None else text(call.where)
    return _words("call", head, _words("args", *map(text, call.args)), where)
