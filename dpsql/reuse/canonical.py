"""What a measurement asks, as text that does not depend on how it was written.

Claim: measurements of equal text have the same exact answer on every database. So aliases,
column numbers, formatting, the order of conditions, of inner joins and of their sides, and
subqueries that only rename or filter do not matter; whatever else might, is in the text.
Argument: filters, projections and inner joins are gathered into one block: a bag of sources and a
bag of conditions, all of them total functions of one row, so that neither order matters and
computed columns may be written out where they are used. Every source is named by its place among
the sorted texts of sources. Each other operator is written with everything it has. What is not
known here raises ``NotCanonical``, and the caller falls back on the statement itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import assert_never

from dpsql.aggregates.statistic import Statistic
from dpsql.aggregates.statistic import Values as Different
from dpsql.plan.contents import content
from dpsql.plan.nodes import Measurement
from dpsql.sql.expressions import (
    Aggregated,
    Call,
    Case,
    Column,
    Expression,
    Interval,
    Literal,
    Parameter,
    SortKey,
    Subquery,
    Window,
    substitute,
)
from dpsql.sql.narrow import conjuncts
from dpsql.sql.relations import (
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

_EITHER_WAY = frozenset({"eq", "and", "or"})
"""Functions whose arguments may change places."""


class NotCanonical(Exception):
    """Something that this module does not know how to name."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A column of a source of the block; ``source`` counts sources as they were met."""

    source: int
    column: str


Term = str | _Source | tuple["Term", ...]
"""An expression with its columns still open; ``tuple`` starts with the operator's words."""


@dataclass(slots=True)
class _Block:
    """Sources and conditions in no order, and what each column number stands for."""

    sources: dict[int, str] = field(default_factory=dict)
    conditions: list[Term] = field(default_factory=list)
    columns: dict[int, Term] = field(default_factory=dict)
    written: dict[int, Expression] = field(default_factory=dict)
    """Computed columns, as they are computed from columns of sources."""
    tests: list[Expression] = field(default_factory=list)
    """The conditions again, over columns of sources."""

    def over_sources(self, node: Expression) -> Expression:
        """The expression with computed columns written out."""
        return substitute(
            node, lambda n: self.written.get(n.number) if isinstance(n, Column) else None
        )

    def named(self) -> dict[int, str]:
        """Each source by its place among all; equal ones stay in the order of the text."""
        order = sorted(self.sources, key=lambda n: (self.sources[n], n))
        return {number: f"#{place}" for place, number in enumerate(order)}

    def text(self) -> str:
        """The block, closed: rows that the sources have together where all conditions hold."""
        names = self.named()
        conditions = sorted({closed(c, names) for c in self.conditions})
        return _words("rows", *sorted(self.sources.values()), "where", *conditions)


@dataclass(frozen=True, slots=True)
class Question:
    """What a measurement asks, in canonical words, part by part.

    ``values`` are the keys, and ``conditions`` the conditions by their text, as expressions over
    columns of sources; ``text`` gives the words of any expression over these.
    """

    sources: str
    conditions: Mapping[str, Expression]
    keys: tuple[str, ...]
    values: tuple[Expression, ...]
    statistics: tuple[str, ...]
    unit: str
    text: Callable[[Expression], str] = field(compare=False)

    def words(self, chosen: tuple[int, ...]) -> str:
        """The text of the question about some of its statistics."""
        return _words(
            self.sources, "where", *sorted(self.conditions), "by", *self.keys,
            "of", *(self.statistics[i] for i in chosen), "unit", self.unit,
        )  # fmt: skip


def question(measurement: Measurement) -> Question:
    """A measurement in canonical words: rows, groups, statistics, and whose rows they are."""
    canon = _Canon()
    block = canon.block(measurement.input)
    names = block.named()

    def text(node: Expression) -> str:
        return closed(canon.term(node, block.columns), names)

    units = [
        sorted(closed(block.columns[n], names) for n in part if n in block.columns)
        for part in measurement.privacy.key
    ]
    if not all(units):
        raise NotCanonical
    privacy = measurement.privacy
    values = tuple(map(block.over_sources, measurement.keys))
    return Question(
        _words("rows", *sorted(block.sources.values())),
        {text(condition): condition for condition in block.tests},
        tuple(map(text, values)),
        values,
        tuple(_statistic(s, text) for s in measurement.statistics),
        _words(privacy.unit, repr(units), repr((privacy.max_rows, privacy.per_group))),
        text,
    )


def _statistic(statistic: Statistic, text: Callable[[Expression], str]) -> str:
    """All fields: expressions by their text, anything else as it is."""
    parts = []
    for item in fields(statistic):
        value = getattr(statistic, item.name)
        if isinstance(statistic, Different) and item.name == "values":
            parts.append(_words(*map(text, value)))
            continue
        parts.append(text(value) if isinstance(value, Expression) else repr(value))
    return _words(type(statistic).__name__, *parts)


def closed(term: Term, names: Mapping[int, str]) -> str:
    """A term as text, each source by its name; arguments sorted where their order is nothing."""
    match term:
        case str():
            return term
        case _Source(source=source, column=column):
            return f"{names[source]}.{column}"
        case tuple():
            head, *rest = (closed(part, names) for part in term)
            return _words(head, *(sorted(rest) if head.split(" ")[0] in _EITHER_WAY else rest))
        case _:
            assert_never(term)


def _words(*parts: str) -> str:
    """Parts in brackets, each with its length, so that no text can pass for another."""
    return "(" + " ".join(f"{len(part)}:{part}" for part in parts) + ")"


class _Canon:
    """Numbers the sources of one measurement."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def block(self, relation: Relation) -> _Block:  # noqa: C901 (one arm for each relation)
        """The relation as one block."""
        match relation:
            case Scan():
                return self._scan(relation)
            case Filter(input=below, predicate=predicate):
                block = self.block(below)
                self._require(block, conjuncts(predicate))
                return block
            case Project(input=below, values=values, fields=fields):
                block = self.block(below)
                found = [self.term(v, block.columns) for v in values]
                written = [block.over_sources(v) for v in values]
                block.columns |= {f.number: t for f, t in zip(fields, found, strict=True)}
                block.written |= {f.number: v for f, v in zip(fields, written, strict=True)}
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
                names = block.named()
                kept = [closed(block.columns[f.number], names) for f in fields]
                columns = {f.number: f"d{i}" for i, f in enumerate(fields)}
                return self._source(_words("distinct", block.text(), *kept), columns)
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

    def term(self, node: Expression, columns: Mapping[int, Term]) -> Term:
        """An expression over columns that are known by what they stand for."""
        match node:
            case Column(number=number):
                if number not in columns:
                    raise NotCanonical
                return columns[number]
            case Literal(value=value, shape=shape):
                return f"'{value!r} {shape.kind.value}"
            case Interval(count=count, unit=unit):
                return f"'{count} {unit}"
            case Call(function=name, args=args, option=option, shape=shape):
                head = f"{name} {option} {shape.kind.value}"
                return (head, *self._terms(self._flat(name, args), columns))
            case Case(whens=whens, otherwise=otherwise, shape=shape):
                parts = [part for when in whens for part in when]
                head = f"case {shape.kind.value}"
                return (head, *self._terms((*parts, otherwise), columns))
            case Window():
                return self._window(node, columns)
            case Subquery() | Parameter():
                raise NotCanonical
            case _:
                assert_never(node)

    def _flat(self, name: str, args: tuple[Expression, ...]) -> Iterator[Expression]:
        """The arguments of nested ANDs or ORs as one list."""
        for arg in args:
            if name in ("and", "or") and isinstance(arg, Call) and arg.function == name:
                yield from self._flat(name, arg.args)
            else:
                yield arg

    def _terms(self, nodes: object, columns: Mapping[int, Term]) -> Iterator[Term]:
        assert hasattr(nodes, "__iter__")
        return (self.term(node, columns) for node in nodes)

    def _optional(self, node: Expression | None, columns: Mapping[int, Term]) -> Term:
        return "always" if node is None else self.term(node, columns)

    def _window(self, node: Window, columns: Mapping[int, Term]) -> Term:
        head = f"window {node.function} {node.distinct} {node.shape.kind.value} {node.frame}"
        partition = ("partition", *self._terms(node.partition, columns))
        order = ("order", *(self._sorted(key, columns) for key in node.order))
        where = self._optional(node.where, columns)
        return (head, ("args", *self._terms(node.args, columns)), partition, order, where)

    def _sorted(self, key: SortKey, columns: Mapping[int, Term]) -> Term:
        return (f"key {key.descending} {key.nulls_first}", self.term(key.value, columns))

    def _source(self, text: str, columns: Mapping[int, str]) -> _Block:
        """A block of one source with these columns."""
        number = next(self._numbers)
        terms: dict[int, Term] = {n: _Source(number, name) for n, name in columns.items()}
        return _Block({number: text}, [], terms)

    def _scan(self, scan: Scan) -> _Block:
        state = type(scan.privacy).__name__
        text = _words("table", scan.table.name, str(scan.lean), state, *content(scan))
        columns = {f.number: f"{f.name} {f.shape.kind.value}" for f in scan.fields}
        owners = {f.number: f"{f.name} of the unit" for f in scan.unit_fields}
        return self._source(text, {**owners, **columns})

    def _inner(self, join: Join) -> _Block:
        left, right = self._sides(join)
        block = _Block(
            left.sources | right.sources,
            left.conditions + right.conditions,
            left.columns | right.columns,
            left.written | right.written,
            left.tests + right.tests,
        )
        if join.condition is not None:
            self._require(block, conjuncts(join.condition))
        return block

    def _require(self, block: _Block, conditions: list[Expression]) -> None:
        """Rows are those where these hold as well."""
        block.tests += [block.over_sources(c) for c in conditions]
        block.conditions += [self.term(c, block.columns) for c in conditions]

    def _sides(self, join: Join) -> tuple[_Block, _Block]:
        left, right = self.block(join.left), self.block(join.right)
        if left.columns.keys() & right.columns.keys():
            raise NotCanonical
        return left, right

    def _outer(self, join: Join) -> _Block:
        """Both sides closed, then a source of its own that holds the columns of both."""
        left, right = self._sides(join)
        sides = [self._closed(block, word) for block, word in ((left, "l"), (right, "r"))]
        both: dict[int, Term] = {n: name for _, names in sides for n, name in names.items()}
        on = [] if join.condition is None else conjuncts(join.condition)
        conditions = sorted(closed(self.term(c, both), {}) for c in on)
        text = _words(join.kind, sides[0][0], sides[1][0], *conditions)
        kept = sides[0][1] if join.kind in ("semi", "anti") else {**sides[0][1], **sides[1][1]}
        return self._source(text, kept)

    def _closed(self, block: _Block, word: str) -> tuple[str, dict[int, str]]:
        """A block as text, and its columns as text."""
        names = block.named()
        columns = {n: _words(word, closed(t, names)) for n, t in block.columns.items()}
        return block.text(), columns

    def _aggregate(self, aggregate: Aggregate) -> _Block:
        block = self.block(aggregate.input)
        names = block.named()
        keys = [closed(self.term(k, block.columns), names) for k in aggregate.keys]
        calls = [closed(self._call(c, block.columns), names) for c in aggregate.calls]
        text = _words("groups", block.text(), repr(aggregate.sets), *keys, "of", *calls)
        columns = {f.number: f"g{i}" for i, f in enumerate(aggregate.fields)}
        return self._source(text, columns)

    def _call(self, call: Aggregated, columns: Mapping[int, Term]) -> Term:
        head = f"{call.function} {call.distinct} {call.option} {call.shape.kind.value}"
        args = ("args", *self._terms(call.args, columns))
        return ("call", head, args, self._optional(call.where, columns))

    def _windowed(self, windowed: Windowed) -> _Block:
        """Windows see the rows as they are here, so this is where the block ends."""
        block = self.block(windowed.input)
        names = block.named()
        below = {n: closed(t, names) for n, t in block.columns.items()}
        found = [closed(self.term(w, block.columns), names) for w in windowed.windows]
        new = windowed.fields[len(windowed.fields) - len(found) :]
        text = _words("windows", block.text(), *found)
        return self._source(text, {**below, **{f.number: f"w{i}" for i, f in enumerate(new)}})

    def _union(self, union: Union) -> _Block:
        sides = []
        width = len(union.fields)
        for i, below in enumerate(union.inputs):
            block = self.block(below)
            names = block.named()
            mine = union.columns[i] if union.columns else below.fields[:width]
            sides.append(
                _words(block.text(), *(closed(block.columns[c.number], names) for c in mine))
            )
        columns = {f.number: f"u{i} {f.shape.kind.value}" for i, f in enumerate(union.fields)}
        return self._source(_words(union.operation, *sides), columns)
