"""Writes relations for DuckDB, in one SELECT block as far as the order of SQL's clauses allows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never

from dpsql.engines.duckdb.constants import literal, quote_name
from dpsql.engines.duckdb.expressions import (
    as_planned,
    expression,
    key_text,
    sort_list,
    write_call,
)
from dpsql.engines.duckdb.types import engine_type
from dpsql.ir.expressions import Aggregated, Column, alias
from dpsql.ir.relations import (
    Aggregate,
    Copied,
    Distinct,
    Filter,
    Join,
    Limit,
    Private,
    Project,
    Relation,
    Scan,
    Sort,
    Stored,
    Union,
    Values,
    Windowed,
)
from dpsql.policy.model import ForeignKey
from dpsql.policy.prepared_copies import CATALOG, OVER_LIMIT_CATALOG, RANK, owners
from dpsql.policy.types import Kind


@dataclass(frozen=True, slots=True)
class Block:
    """A SELECT that is being written: the texts of its columns, its source, and its conditions.

    ``computed`` says that some columns are more than names, so that reading them twice would
    compute them twice. ``closed`` says that no further clause may be added below its last ones.
    """

    items: dict[int, str]
    source: str
    where: tuple[str, ...] = ()
    order: str = ""
    limit: str = ""
    distinct: bool = False
    group: str = ""
    computed: bool = False

    @property
    def closed(self) -> bool:
        """Whether rows are already grouped, sorted or cut."""
        return bool(self.order or self.limit or self.distinct or self.group)

    def tail(self) -> str:
        """The text from FROM on."""
        parts = [f" FROM {self.source}" if self.source else ""]
        parts.append(f" WHERE {' AND '.join(self.where)}" if self.where else "")
        parts += [self.group, self.order, self.limit]
        return "".join(parts)


@dataclass(slots=True)
class Writer:
    """Writes relations. ``names`` has the columns by number, for their aliases."""

    names: dict[int, Column] = field(default_factory=dict)
    tables: int = 0

    def block(self, relation: Relation) -> Block:  # noqa: C901 (one arm for each relation)
        """The relation as a block."""
        for column in relation.fields:
            self.names.setdefault(column.number, column)
        match relation:
            case Scan():
                return self._scan(relation)
            case Values():
                return self._values(relation)
            case Stored(given=True):
                return self._given(relation)
            case Stored(name=name, fields=fields):
                return Block({f.number: quote_name(alias(f)) for f in fields}, quote_name(name))
            case Filter(input=below, predicate=predicate):
                block = self.open(below)
                return replace(block, where=(*block.where, expression(predicate, block.items)))
            case Project():
                return self._project(relation)
            case Aggregate():
                return self._aggregate(relation)
            case Join():
                return self._join(relation)
            case Union():
                return self._union(relation)
            case Windowed():
                return self._windowed(relation)
            case Distinct(input=below, fields=fields):
                block = self.block(below)
                block = self.sealed(block) if block.closed else block
                kept = {f.number: key_text(f, block.items) for f in fields}
                return replace(block, items=kept, distinct=True, computed=True)
            case Sort(input=below, keys=keys):
                block = self.open(below)
                return replace(block, order=f" ORDER BY {sort_list(keys, block.items)}")
            case Limit(input=below, count=count, offset=offset):
                return self._limit(below, count, offset)
            case _:
                assert_never(relation)

    def select(self, relation: Relation, fields: tuple[Column, ...] | None = None) -> str:
        """The relation as a whole statement, with its columns under their aliases."""
        block, chosen = self.block(relation), fields or relation.fields
        if block.distinct and {f.number for f in chosen} != set(block.items):
            block = self.sealed(block)  # rows are distinct in all of their columns
        return self.statement(block, chosen)

    def statement(self, block: Block, fields: tuple[Column, ...]) -> str:
        """A block as a statement."""
        unique = {f.number: f for f in fields}
        items = ", ".join(
            _named(block.items[n], quote_name(alias(self.names.get(n, f))))
            for n, f in unique.items()
        )
        return f"SELECT {'DISTINCT ' if block.distinct else ''}{items or '1'}{block.tail()}"

    def sealed(self, block: Block) -> Block:
        """The block as a subquery with plain columns, also those of the unit's hidden key."""
        columns = tuple(self.names[n] for n in block.items)
        self.tables += 1
        name = f"q{self.tables}"
        text = self.statement(block, columns)
        return Block(
            {c.number: f"{name}.{quote_name(alias(c))}" for c in columns}, f"({text}) AS {name}"
        )

    def open(self, relation: Relation) -> Block:
        """A block to which WHERE, grouping or new columns may be added."""
        block = self.block(relation)
        return self.sealed(block) if block.closed or block.computed else block

    def _scan(self, scan: Scan) -> Block:
        if scan.copied is not None:
            return self._copied(scan, scan.copied)
        self.tables += 1
        name = f"t{self.tables}"
        items = {f.number: _column(scan, f, name) for f in scan.fields}
        stored = quote_name(scan.table.name)
        if scan.over_limit_rows is not None:
            stored = f"{OVER_LIMIT_CATALOG}.{quote_name(scan.over_limit_rows)}"
        source = f"{stored} AS {name}"
        holder = name
        for key in () if scan.skip_unit_path else scan.table.path:
            self.tables += 1
            parent = f"t{self.tables}"
            source += (
                f" JOIN {quote_name(key.references)} AS {parent} ON {_matches(holder, key, parent)}"
            )
            holder = parent
        owners = () if scan.skip_unit_path else scan.unit_fields
        for column in owners:
            self.names.setdefault(column.number, column)
            items.setdefault(column.number, f"{holder}.{quote_name(column.name)}")
        owned = tuple(f"{items[c.number]} IS NOT NULL" for c in owners)
        return Block(items, source, owned if isinstance(scan.privacy, Private) else ())

    def _copied(self, scan: Scan, copied: Copied) -> Block:
        """A prepared copy. Every row of it has its unit, so no path is followed."""
        self.tables += 1
        name = f"t{self.tables}"
        items = {f.number: _column(scan, f, name) for f in scan.fields}
        held = zip(scan.unit_fields, owners(scan.table), strict=True)
        hidden = [] if scan.skip_unit_path else [(column, text) for column, text in held]
        hidden += [(s.column, s.steps.name) for s in copied.stepped]
        for column, text in hidden:
            self.names.setdefault(column.number, column)
            items.setdefault(column.number, f"{name}.{quote_name(text)}")
        kept = () if copied.most is None else (f"{name}.{quote_name(RANK)} <= {copied.most}",)
        return Block(items, f"{CATALOG}.{quote_name(scan.table.name)} AS {name}", kept)

    def _values(self, values: Values) -> Block:
        if not values.fields:
            return Block({}, "")
        self.tables += 1
        name = f"t{self.tables}"
        rows = ", ".join(
            "("
            + ", ".join(literal(v, f.shape.kind) for v, f in zip(row, values.fields, strict=True))
            + ")"
            for row in values.rows or ((None,) * len(values.fields),)
        )
        columns = ", ".join(quote_name(alias(f)) for f in values.fields)
        items = {
            f.number: _typed(f"{name}.{quote_name(alias(f))}", f.shape.kind) for f in values.fields
        }
        none = () if values.rows else ("FALSE",)
        return Block(items, f"(VALUES {rows}) AS {name}({columns})", none)

    def _given(self, stored: Stored) -> Block:
        """Rows that are passed as a parameter, which is a list of records."""
        self.tables += 1
        name = f"t{self.tables}"
        untyped = {f.number for f in stored.fields if f.shape.kind is Kind.NULL}
        types = ", ".join(
            f"o{i} {engine_type(Kind.TEXT if f.number in untyped else f.shape.kind)}"
            for i, f in enumerate(stored.fields)
        )
        rows = f"(SELECT unnest(CAST(${stored.name} AS STRUCT({types})[])) AS r) AS {name}"
        items = {
            f.number: "NULL" if f.number in untyped else f"{name}.r.o{i}"
            for i, f in enumerate(stored.fields)
        }
        return Block(items, rows)

    def _project(self, project: Project) -> Block:
        block = self.block(project.input)
        if block.distinct or block.limit or block.computed:
            block = self.sealed(block)
        items = dict(block.items)
        computed = block.computed or bool(block.group)
        for column, value in zip(project.fields, project.values, strict=True):
            items[column.number] = expression(value, block.items)
            computed = computed or not isinstance(value, Column)
        return replace(block, items=items, computed=computed)

    def _aggregate(self, aggregate: Aggregate) -> Block:
        block = self.open(aggregate.input)
        keys = [key_text(k, block.items) for k in aggregate.keys]
        texts = [*keys, *(write_aggregate(c, block.items) for c in aggregate.calls)]
        items = {f.number: t for f, t in zip(aggregate.fields, texts, strict=True)}
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        if aggregate.sets:
            sets = ", ".join(f"({', '.join(keys[k] for k in s)})" for s in aggregate.sets)
            group = f" GROUP BY GROUPING SETS ({sets})"
        return replace(block, items=items, group=group or " ", computed=True)

    def _join(self, join: Join) -> Block:
        left, right = (self._side(side) for side in (join.left, join.right))
        items = {**left.items, **right.items}
        # A released table may be on both sides: a shown column is never the other's hidden one.
        shown = {f.number for f in join.right.fields}
        items |= {f.number: left.items[f.number] for f in join.left.fields if f.number not in shown}
        condition = "" if join.condition is None else f" ON {expression(join.condition, items)}"
        words = f"{join.kind.upper()} JOIN"
        inner = f"({right.source})" if isinstance(join.right, Join) else right.source
        source = f"{left.source} {words} {inner}{condition}"
        if join.kind in ("semi", "anti"):
            items = dict(left.items)
        return Block(items, source, left.where + right.where)

    def _side(self, relation: Relation) -> Block:
        """One side of a join. A plain scan is joined directly, anything else as a subquery."""
        block = self.block(relation)
        plain = not block.closed and not block.computed and not block.where
        joins = isinstance(relation, Scan | Stored | Join)
        return block if plain and joins else self.sealed(block)

    def _union(self, union: Union) -> Block:
        self.tables += 1
        name = f"q{self.tables}"
        sides = []
        for position, side in enumerate(union.inputs):
            block = self.block(side)
            block = self.sealed(block) if block.closed else block
            whole = side.fields[: len(union.fields)]
            columns = union.columns[position] if union.columns else whole
            items = ", ".join(
                _named(_typed(block.items[c.number], f.shape.kind), quote_name(alias(f)))
                for c, f in zip(columns, union.fields, strict=True)
            )
            sides.append(f"SELECT {items}{block.tail()}")
        text = f" {union.operation.upper()} ".join(sides)
        return Block(
            {f.number: f"{name}.{quote_name(alias(f))}" for f in union.fields},
            f"({text}) AS {name}",
        )

    def _windowed(self, windowed: Windowed) -> Block:
        block, read = self.open(windowed.input), windowed.read
        items = {n: text for n, text in block.items.items() if read is None or n in read}
        new = windowed.fields[len(windowed.input.fields) :]
        for column, window in zip(new, windowed.windows, strict=True):
            items[column.number] = expression(window, block.items)
        return replace(block, items=items, computed=True)

    def _limit(self, below: Relation, count: int | None, offset: int) -> Block:
        block = self.block(below)
        if block.limit:
            block = self.sealed(block)
        text = ("" if count is None else f" LIMIT {count}") + (
            f" OFFSET {offset}" if offset else ""
        )
        return replace(block, limit=text)


def write_aggregate(call: Aggregated, names: dict[int, str]) -> str:
    """A plain aggregate: over public or released rows, or over one unit's own rows."""
    return as_planned(write_call(call, names), call)


def _column(scan: Scan, field: Column, of: str) -> str:
    """A stored column as its planned type, with a cast if it is stored as another type."""
    text, declared = f"{of}.{quote_name(field.name)}", scan.table.columns.get(field.name)
    held = declared is not None and declared.held_as_read and declared.kind is field.shape.kind
    return text if held else _typed(text, field.shape.kind)


def _typed(text: str, kind: Kind) -> str:
    """A stored value as its planned type. A value that does not fit is NULL, never an error."""
    return f"TRY_CAST({text} AS {engine_type(kind)})" if kind is not Kind.NULL else text


def _named(text: str, name: str) -> str:
    return text if text == name or text.endswith(f".{name}") else f"{text} AS {name}"


def _matches(child: str, key: ForeignKey, parent: str) -> str:
    pairs = zip(key.columns, key.key, strict=True)
    return " AND ".join(f"{child}.{quote_name(a)} = {parent}.{quote_name(b)}" for a, b in pairs)
