"""UNION, EXCEPT and INTERSECT: columns pair by position, and private rows keep their unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from dpsql.catalog.function import common_kind, name_of_type
from dpsql.catalog.functions import Mismatch
from dpsql.ir.domain import hull
from dpsql.ir.expressions import Column, Shape
from dpsql.ir.relations import Aggregate, Filter, Private, Relation, Union, written_columns
from dpsql.policy.types import Kind
from dpsql.sql.bind import privacy
from dpsql.sql.bind.context import Context, Output, refuse
from dpsql.sql.bind.subqueries import not_null
from dpsql.sql.spans import span_of

_OPERATIONS: dict[type[exp.Expr], str] = {
    exp.Union: "union",
    exp.Except: "except",
    exp.Intersect: "intersect",
}


def combine_queries(node: exp.SetOperation, sides: list[Output], context: Context) -> Output:
    """The set operation of two bound queries."""
    if len(sides[0].columns) != len(sides[1].columns):
        raise refuse(
            "DP201",
            node,
            "the queries have different numbers of columns",
            "Columns are matched by position.",
        )
    operation = _OPERATIONS[type(node)]
    fields = tuple(
        _united(context, a, b, operation, node)
        for a, b in zip(sides[0].columns, sides[1].columns, strict=True)
    )
    every = not node.args.get("distinct")
    if operation == "union" and share_one_unit([s.relation for s in sides]):
        return _with_unit(node, sides, fields, context, every=every)
    state = privacy.union_privacy([s.relation.privacy for s in sides])
    inputs = tuple(s.relation for s in sides)
    columns = tuple(s.columns for s in sides)
    name = f"{operation} all" if every else operation
    return Output(Union(name, inputs, fields, state, span_of(node), columns), fields)


def share_one_unit(relations: list[Relation]) -> bool:
    """Whether every side is private, of the same kind of unit, and has its unit's key."""
    found = [r.privacy for r in relations]
    first = found[0]
    return isinstance(first, Private) and all(
        isinstance(p, Private) and p.unit == first.unit and len(p.key) == len(first.key) > 0
        for p in found
    )


def _with_unit(
    node: exp.SetOperation, sides: list[Output], fields: tuple[Column, ...], context: Context,
    *, every: bool,
) -> Output:  # fmt: skip
    """UNION ALL of private rows: all sides have the unit's key as hidden columns.

    Claim: each row of the result is a row of one side with that side's unit, so it belongs to
        one unit; a unit has the rows that it has on all sides together.
    Assumes: on each side the columns of the unit's key hold it.
    Argument: if one side reads the key by its declared type, all sides do, because a common kind of
        different kinds could merge two units. A key that does not fit the type is then NULL. Such
        rows belong to no unit and are left out, as wherever the key is read by its type.

    UNION without ALL then groups by the visible columns.
    """
    states = [s.relation.privacy for s in sides]
    keys = [p.key for p in states if isinstance(p, Private)]
    held = [
        tuple(_key_column(s.relation, part) for part in key)
        for s, key in zip(sides, keys, strict=True)
    ]
    hidden = tuple(
        context.column(f"unit{i}", _as_declared(parts))
        for i, parts in enumerate(zip(*held, strict=True))
    )
    columns = tuple((*s.columns, *own) for s, own in zip(sides, held, strict=True))
    state = privacy.union_privacy(states)
    assert isinstance(state, Private)
    state = replace(
        state,
        key=tuple(
            frozenset({h.number, *_always_key(fields, sides, keys, i)})
            for i, h in enumerate(hidden)
        ),
    )
    inputs, place = tuple(s.relation for s in sides), span_of(node)
    relation: Relation = Union("union all", inputs, fields + hidden, state, place, columns)
    for key in hidden:
        if key.shape.nullable:
            there = not_null(key)
            relation = Filter(relation, there, relation.fields, state, place)
    if not every:
        grouped = privacy.group_privacy(state, fields, fields)
        called = context.called(*(f.name for f in fields))
        relation = Aggregate(relation, fields, (), fields, grouped, place, called=called)
    return Output(relation, fields)


def _as_declared(parts: Sequence[Column]) -> Shape:
    """The shape of a part of the key: by its declared type if a side uses that, else as stored."""
    kinds = {part.shape.kind for part in parts}
    typed = next((p.shape for p in parts if p.shape.kind is not Kind.NULL), parts[0].shape)
    return replace(typed, nullable=len(kinds) > 1)


def _always_key(
    fields: tuple[Column, ...], sides: list[Output],
    keys: list[tuple[frozenset[int], ...]], part: int,
) -> set[int]:  # fmt: skip
    """The numbers of visible fields that hold this part of the key on every side."""
    return {
        field.number
        for position, field in enumerate(fields)
        if all(s.columns[position].number in k[part] for s, k in zip(sides, keys, strict=True))
    }


def _key_column(relation: Relation, part: frozenset[int]) -> Column:
    """A column that holds a part of the unit's key, preferably a visible one."""
    for field in relation.fields:
        if field.number in part:
            return field
    known = written_columns(relation)
    return known[min(part & known.keys())]


def _united(context: Context, a: Column, b: Column, operation: str, node: exp.Expr) -> Column:
    try:
        kind = common_kind([a, b], operation.upper())
    except Mismatch as mismatch:
        raise refuse("DP201", node, str(mismatch), "Columns are matched by position.") from None
    shape = Shape(
        kind,
        a.shape.nullable or b.shape.nullable,
        hull(a.shape.domain, b.shape.domain),
        a.shape.type_name if a.shape.type_name == b.shape.type_name else name_of_type(kind, (a, b)),
    )
    return context.column(a.name, shape, identifier=a.identifier or b.identifier)
