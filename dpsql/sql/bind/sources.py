"""FROM: tables, derived tables, CTEs, constant rows and joins."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dpsql.catalog.function import common_kind, name_of_type
from dpsql.diagnostics.edit import Edit
from dpsql.diagnostics.refusal import Refused
from dpsql.ir import domain as d
from dpsql.ir.expressions import Column, Expression, Literal, Shape
from dpsql.ir.relations import Privacy, Private, Public, Relation, Scan, Values
from dpsql.policy.model import Column as Declared
from dpsql.policy.model import Table
from dpsql.policy.types import Kind, Scalar, type_name
from dpsql.sql.bind.context import Catalog, Context, Output, QueryBinder, count_copy, refuse
from dpsql.sql.bind.join_rules import join
from dpsql.sql.bind.literals import of_kind
from dpsql.sql.bind.scalars import Scalars
from dpsql.sql.bind.scope import Named, Scope, fold_name, same, spell_name
from dpsql.sql.bind.series import series
from dpsql.sql.bind.views import bind_view, view_of
from dpsql.sql.spans import span_of

MOST_TABLES = 64


@dataclass(frozen=True, slots=True)
class From:
    """A bound FROM clause: its relation, and the names for the rest of the SELECT."""

    relation: Relation
    scope: Scope


def bind_from(select: exp.Select, context: Context, ctes: Scope, query: QueryBinder) -> From:
    """The FROM clause and its joins, in the order written."""
    clause = select.args.get("from_")
    if clause is None:
        nothing = Values((), ((),))
        return From(nothing, ctes)
    current = _item(clause.this, context, ctes, query)
    for clause in select.args.get("joins") or ():
        current = _join(current, clause, context, ctes, query)
    return current


def _item(node: exp.Expr, context: Context, ctes: Scope, query: QueryBinder) -> From:
    alias_node = node.args.get("alias")
    alias = fold_name(alias_node.this) if alias_node is not None and alias_node.this else ""
    names = [fold_name(c) for c in (alias_node.args.get("columns") or ())] if alias_node else []
    if isinstance(node, exp.Table) and isinstance(node.this, exp.ExplodingGenerateSeries):
        alias = alias or "generate_series"
        made = series(node.this, context, ctes, alias)
        output = Output(made, made.fields)
    elif isinstance(node, exp.Table):
        alias = alias or fold_name(node.this)
        output = _table(node, context, ctes, query)
    elif isinstance(node, exp.Values):
        output = bind_values(node, context, ctes)
    elif isinstance(node, exp.Subquery):
        output = query(node.this, context, ctes)
    else:
        raise refuse(
            "DP100", node, "this cannot stand in FROM", "It is not in the SQL that dpsql answers."
        )
    fields = _renamed(output.columns, names, node)
    return From(output.relation, replace(ctes, sources=(Named(alias, fields),)))


def _renamed(fields: tuple[Column, ...], names: list[str], node: exp.Expr) -> tuple[Column, ...]:
    if len(names) > len(fields):
        raise refuse(
            "DP105", node, "more column names than columns", "Each name is for one column."
        )
    kept = fields[len(names) :]
    return (*(replace(f, name=n) for f, n in zip(fields, names, strict=False)), *kept)


def _table(node: exp.Table, context: Context, ctes: Scope, query: QueryBinder) -> Output:
    name, schema = fold_name(node.this), node.args.get("db")
    cte = next((known for known in ctes.ctes if same(known, name)), None)
    if schema is None and cte is not None:
        return _cte(cte, context, ctes, query)
    if schema is not None and fold_name(schema).lower() not in context.catalog.schemas:
        raise _unknown_table(node, f"{fold_name(schema)}.{name}", context.catalog)
    visible = [
        table
        for key, table in context.catalog.policy.tables.items()
        if same(key, name) and key in context.catalog.visible
    ]
    if not visible:
        view = view_of(name, context.catalog)
        if view is not None:
            return bind_view(view, node, context, query)
        raise _unknown_table(node, name, context.catalog)
    scan = scan_of(visible[0], context, node)
    return Output(scan, scan.fields)


def _cte(name: str, context: Context, ctes: Scope, query: QueryBinder) -> Output:
    body, outer, names = ctes.ctes[name]
    count_copy(body, context, body)
    output = query(body, context, outer)
    return Output(output.relation, _renamed(output.columns, list(names), body))


def _unknown_table(node: exp.Expr, name: str, catalog: Catalog) -> Refused:
    near = difflib.get_close_matches(name, sorted(catalog.visible), 3)
    known = near or sorted(catalog.visible)[:12]
    return refuse(
        "DP104",
        node,
        f'there is no table "{name}"',
        "A table that the policy does not list for this role does not exist.",
        f"Known: {', '.join(known)}." if known else "",
    )


def scan_of(table: Table, context: Context, node: exp.Expr) -> Scan:
    """The relation that reads a listed table, with the key of its unit."""
    if len(context.tables) >= MOST_TABLES:
        raise refuse(
            "DP115",
            node,
            f"more than {MOST_TABLES} tables",
            "Planning time is bounded so that no statement can keep others waiting.",
        )
    context.tables.append(table.name)
    # Rows with NULL in the key belong to no unit, and are left out when the table is read.
    present = () if table.path or table.public else table.unit_columns
    fields = tuple(
        context.column(
            c.name,
            Shape(
                c.kind,
                c.nullable and c.name not in present,
                _declared(c, _values(c, table, context)),
                type_name(c.declared),
            ),
            identifier=c.identifier,
        )
        for c in table.columns.values()
    )
    own = {f.name: f for f in fields}
    if table.public or context.catalog.policy.units[str(table.unit)].is_row:
        unit_fields: tuple[Column, ...] = ()
    elif table.path:
        unit_fields = tuple(
            context.column(name, Shape(Kind.NULL, False)) for name in table.unit_columns
        )
    else:
        unit_fields = tuple(own[name] for name in table.unit_columns)
    state, view = _privacy(table, unit_fields), context.hidden_by
    return Scan(table, fields, unit_fields, state, span_of(node), view=view)


def _privacy(table: Table, unit_fields: tuple[Column, ...]) -> Privacy:
    if table.unit is None:
        return Public()
    key = tuple(frozenset({f.number}) for f in unit_fields)
    return Private(table.unit, key, table.max_rows_per_unit, table.max_rows_per_group)


def _values(column: Declared, table: Table, context: Context) -> tuple[Scalar, ...] | None:
    """The list of all values of a column, if it is known.

    The values of a public column are also known if another column's ``values_from`` names it.
    """
    source = column.values_from or (table.name, column.name)
    if column.values is not None or (table.unit is not None and column.values_from is None):
        return column.values
    return context.catalog.public_values.get(source)


def _declared(column: Declared, values: tuple[Scalar, ...] | None) -> d.Domain:
    if values is not None:
        return d.members(values)
    if column.kind is Kind.BOOLEAN:
        return d.members([False, True])
    low, high = column.range or (None, None)
    whole = column.kind is Kind.INTEGER
    return d.Domain(low, high, integral=whole, longest=column.max_length)


def bind_values(node: exp.Values, context: Context, ctes: Scope) -> Output:
    """VALUES: constant rows, with columns column1, column2, ... unless an alias names them."""
    scalars = Scalars(context, replace(ctes, sources=()))
    rows = [[scalars.bind(v) for v in row.expressions] for row in node.expressions]
    if len({len(row) for row in rows}) != 1 or not all(
        isinstance(v, Literal) for row in rows for v in row
    ):
        raise refuse(
            "DP114",
            node,
            "VALUES takes rows of literals",
            "The rows of VALUES are public constants.",
        )
    columns = [_constants(values) for values in zip(*rows, strict=True)]
    fields = tuple(context.column(f"column{i}", c.shape) for i, c in enumerate(columns, start=1))
    constant = tuple(zip(*(c.values for c in columns), strict=True))
    return Output(Values(fields, constant, span=span_of(node)), fields)


@dataclass(frozen=True, slots=True)
class _Constants:
    """A column of constants: all of one kind, or NULL."""

    shape: Shape
    values: tuple[Scalar | None, ...]


def _constants(parts: Sequence[Expression]) -> _Constants:
    kind = common_kind(parts, "VALUES")
    values = tuple(of_kind(p.value, kind) for p in parts if isinstance(p, Literal))
    known = [v for v in values if v is not None]
    shape = Shape(kind, len(known) < len(values), d.members(known), name_of_type(kind, parts))
    return _Constants(shape, values)


def _join(current: From, node: exp.Join, context: Context, ctes: Scope, query: QueryBinder) -> From:
    other = _item(node.this, context, ctes, query)
    taken = {s.alias.casefold() for s in current.scope.sources}
    for source in other.scope.sources:
        if source.alias and source.alias.casefold() in taken:
            raise refuse(
                "DP106",
                node,
                f'"{source.alias}" names two tables of this FROM clause',
                "A column could then come from either of them.",
                f"{source.alias} AS another_name",
                Edit("alias", sql=_free(source.alias, taken)),
            )
    if node.args.get("method"):
        names = _named_alike(current, other)
        natural = str(node.args["method"]).upper() == "NATURAL" and bool(names)
        raise refuse(
            "DP100", node, "NATURAL or ASOF JOIN is not in the SQL that dpsql answers",
            "Which columns are compared would depend on columns that the policy does not list.",
            "Name the columns: JOIN ... USING (column), or ON a.column = b.column.",
            *([Edit("using", sql=", ".join(names))] if natural else []),
        )  # fmt: skip
    kind = _kind(node)
    both = replace(current.scope, sources=current.scope.sources + other.scope.sources)
    condition, merged = _condition(node, current, other, both, context)
    if condition is None and kind != "cross":
        on_unit = _on_unit(current, other)
        raise refuse(
            "DP102", node, "this join has no condition", "ON or USING says which rows are joined.",
            "Write ON a.column = b.column, or USING (column).",
            *([Edit("on", sql=pair) for pair in ([on_unit] if on_unit else _shared(current, other)[:2])]),
        )  # fmt: skip
    if kind == "right":
        # The same rows: a left join with the sides exchanged.
        relation = join("left", other.relation, current.relation, condition)
    else:
        relation = join(kind, current.relation, other.relation, condition)
    relation = replace(relation, span=span_of(node), on_unit=_on_unit(current, other))
    scope = replace(both, merged=both.merged | merged).with_fields(relation.fields)
    return From(relation, scope)


def _free(alias: str, taken: set[str]) -> str:
    """A name made from the alias that no table of the FROM clause has."""
    return next(name for i in range(2, 200) if (name := f"{alias}_{i}").casefold() not in taken)


def _shared(left: From, right: From) -> list[str]:
    """Equality conditions for the columns that both sides have under the same name."""
    return [
        f"{_in(left, f)} = {_in(right, g)}"
        for f in left.scope.fields
        for g in right.scope.fields
        if f.name == g.name and f.shape.kind is g.shape.kind
    ]


def _named_alike(left: From, right: From) -> list[str]:
    """The column names that both sides have, as written in SQL."""
    names = {f.name for f in right.scope.fields}
    return list(dict.fromkeys(spell_name(f.name) for f in left.scope.fields if f.name in names))


def _in(side: From, column: Column) -> str:
    return _spelled(side.scope, frozenset({column.number}))


def _on_unit(left: From, right: From) -> str:
    """The condition that both sides are of one unit, in visible names; "" if a key is hidden."""
    sides = [
        [_spelled(side.scope, component) for component in side.relation.privacy.key]
        for side in (left, right)
        if isinstance(side.relation.privacy, Private)
    ]
    if len(sides) != 2 or not all(name for side in sides for name in side):
        return ""
    return " AND ".join(f"{a} = {b}" for a, b in zip(*sides, strict=False))


def _spelled(scope: Scope, numbers: frozenset[int]) -> str:
    for source in scope.sources:
        for f in source.fields:
            if f.number in numbers:
                return f"{spell_name(source.alias)}.{spell_name(f.name)}"
    return ""


def _kind(node: exp.Join) -> str:
    side, kind = str(node.args.get("side") or "").lower(), str(node.args.get("kind") or "").lower()
    named = side or kind or ("inner" if node.args.get("on") or node.args.get("using") else "cross")
    named = "left" if named == "left" else named
    if named not in ("inner", "left", "right", "full", "cross") or kind not in (
        "", "inner", "outer", "cross",
    ):  # fmt: skip
        raise refuse(
            "DP100",
            node,
            f"{named.upper()} {kind.upper()} JOIN is not answered",
            "It is not in the SQL that dpsql answers.",
        )
    return named


def _condition(
    node: exp.Join, left: From, right: From, both: Scope, context: Context
) -> tuple[Expression | None, frozenset[str]]:
    on, using = node.args.get("on"), node.args.get("using") or []
    if on is not None:
        return Scalars(context, both).condition(on), frozenset()
    scalars, parts, names = Scalars(context, both), [], set()
    for identifier in using:
        name = exp.column(identifier.copy())
        sides = (left.scope.resolve(name), right.scope.resolve(name))
        parts.append(scalars.call("eq", sides, exp.EQ(this=name)))
        names.add(sides[0].name if isinstance(sides[0], Column) else fold_name(identifier))
    if not parts:
        return None, frozenset()
    whole = parts[0]
    for part in parts[1:]:
        whole = scalars.call("and", (whole, part), node)
    return whole, frozenset(names)
