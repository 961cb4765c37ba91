"""One SELECT: FROM, WHERE, GROUP BY, HAVING, windows, output, DISTINCT, ORDER BY, LIMIT."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpsql.effort import step
from dpsql.ir.expressions import Column, Expression, SortKey, Window, columns, substitute
from dpsql.ir.relations import (
    Aggregate,
    Filter,
    Private,
    Relation,
    Windowed,
)
from dpsql.sql.bind import privacy
from dpsql.sql.bind.aggregate_calls import Calls
from dpsql.sql.bind.calendar_joins import as_inner_calendar_join
from dpsql.sql.bind.context import Context, Output, QueryBinder, refuse
from dpsql.sql.bind.correlated import decorrelate
from dpsql.sql.bind.counted_groups import Counting, over_rows
from dpsql.sql.bind.determined import unit_of
from dpsql.sql.bind.group_keys import Grouping, bind_grouping
from dpsql.sql.bind.grouping_calls import GroupingCalls
from dpsql.sql.bind.join_graph import arrange_joins
from dpsql.sql.bind.options import with_terms
from dpsql.sql.bind.outputs import (
    aggregates,
    holds_aggregate,
    ordinal,
    output_name,
    refuse_ungrouped,
    star,
)
from dpsql.sql.bind.scalars import Scalars
from dpsql.sql.bind.scope import Scope, fold_name, same
from dpsql.sql.bind.select_list import Body, Item, finish
from dpsql.sql.bind.sources import bind_from
from dpsql.sql.bind.subqueries import unnest_conditions
from dpsql.sql.bind.window_calls import Windows, sort_key
from dpsql.sql.group_all import is_group_all
from dpsql.sql.narrow import narrow
from dpsql.sql.spans import span_of

MOST_COLUMNS = 1_600
"""The most columns of a SELECT, as of a table in PostgreSQL."""


def bind_select(select: exp.Select, context: Context, ctes: Scope, query: QueryBinder) -> Output:
    """The relation of one SELECT and its output columns."""
    if not select.expressions:
        raise refuse("DP102", select, "nothing is selected", "An answer has columns.", "List them.")
    source = bind_from(select, context, ctes, query)
    relation, scope = _where(source.relation, source.scope, select, context)
    bound = (
        _Grouped(select, context, relation, scope).bind()
        if aggregates(select)
        else _Plain(select, context, relation, scope).bind()
    )
    output = finish(select, context, bound)
    return replace(output, relation=with_terms(select, output.relation, relation, scope))


def _where(
    relation: Relation, scope: Scope, select: exp.Select, context: Context
) -> tuple[Relation, Scope]:
    where = select.args.get("where")
    condition = None if where is None else Scalars(context, scope).condition(where.this)
    relation, rest = arrange_joins(relation, condition)
    relation, rest = decorrelate(relation, rest, context)
    relation, rest = unnest_conditions(relation, rest, where or select)
    scope = scope.with_fields(relation.fields)
    if rest is None:
        return relation, scope
    return filter_rows(relation, scope, rest, where or select)


def filter_rows(
    relation: Relation, scope: Scope, condition: Expression, node: exp.Expr
) -> tuple[Relation, Scope]:
    """The rows where the condition holds; columns are narrowed by the condition."""
    fields = narrow(relation.fields, condition)
    kept = Filter(relation, condition, fields, relation.privacy, span_of(node))
    return kept, scope.with_fields(fields)


class _Plain:
    """A SELECT without aggregation."""

    def __init__(
        self, select: exp.Select, context: Context, relation: Relation, scope: Scope
    ) -> None:
        self.select, self.context, self.relation, self.scope = select, context, relation, scope
        self.windows = Windows(context)
        self.calls: Calls | None = None

    def bind(self) -> Body:
        items = self._items()
        chosen = self._chosen(items)
        order = self._order(items)
        return Body(self._windowed(self.relation, chosen), items, order)

    def scalars(self, scope: Scope | None = None) -> Scalars:
        return Scalars(self.context, scope or self.scope, self.calls, self.windows)

    def value(self, node: exp.Expr, scope: Scope | None = None) -> Expression:
        """An output or ORDER BY expression."""
        return self.scalars(scope).bind(node)

    def _items(self) -> tuple[Item, ...]:
        found: list[Item] = []
        for node in self.select.expressions:
            inner = node.this if isinstance(node, exp.Alias) else node
            every = star(inner)
            if every is None:
                found.append(Item(output_name(node), inner, self.value(inner)))
            else:
                table = every.args.get("table") if isinstance(every, exp.Column) else None
                fields = self.scope.star(every, None if table is None else fold_name(table))
                found += [Item(f.name, None, self.starred(f, every)) for f in fields]
            if len(found) > MOST_COLUMNS:
                raise refuse(
                    "DP115", node, f"more than {MOST_COLUMNS} columns in one SELECT",
                    "Every row of an answer holds all of its columns in memory.", "Select fewer.",
                )  # fmt: skip
        return tuple(found)

    def starred(self, field: Column, node: exp.Expr) -> Expression:
        """The value of a column of ``*``."""
        return replace(field, span=span_of(node))

    def _chosen(self, items: tuple[Item, ...]) -> Expression | None:
        """The condition of QUALIFY, which may use columns, windows and the names of outputs."""
        qualify = self.select.args.get("qualify")
        if qualify is None:
            return None
        return self.over(self.scalars(self._with_outputs(items)).condition(qualify.this), qualify)

    def _with_outputs(self, items: tuple[Item, ...]) -> Scope:
        """The scope with the names of outputs."""
        return replace(self.scope, aliases={i.name: i.value for i in items})

    def over(self, value: Expression, _node: exp.Expr) -> Expression:
        """The value unchanged: without aggregation any column may be used."""
        return value

    def _windowed(self, relation: Relation, chosen: Expression | None) -> Relation:
        """The relation with its window columns, filtered by QUALIFY."""
        relation = _windowed(relation, self.windows)
        if chosen is None:
            return relation
        fields = narrow(relation.fields, chosen)
        place = span_of(self.select.args["qualify"])
        return Filter(relation, chosen, fields, relation.privacy, place)

    def _order(self, items: tuple[Item, ...]) -> tuple[SortKey, ...]:
        order = self.select.args.get("order")
        if order is None:
            return ()
        first = order.expressions[0]
        if len(order.expressions) == 1 and _is_all(first.this):
            return tuple(sort_key(item.value, first) for item in items)
        return tuple(self._sort_key(item, items) for item in order.expressions)

    def _sort_key(self, item: exp.Expr, items: tuple[Item, ...]) -> SortKey:
        node = item.this
        position = ordinal(node, len(items))
        if position is not None:
            return sort_key(items[position].value, item)
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            named = [i for i in items if same(i.name, fold_name(node.this))]
            if named:
                return sort_key(named[0].value, item)
        return sort_key(self.value(node), item)


class _Grouped(_Plain):
    """A SELECT with GROUP BY, HAVING or aggregates."""

    def bind(self) -> Body:
        clause = self.select.args.get("group")
        every = is_group_all(clause)
        groups = Grouping(self._every()) if every else bind_grouping(clause, self._key)
        keys, self.sets = tuple(groups.keys), groups.sets
        keys += () if self.sets else unit_of(self.relation, keys)
        state = self.relation.privacy
        per_unit = isinstance(state, Private) and privacy.groups_by_unit(state, keys)
        if per_unit and self.sets:
            raise refuse(
                "DP100",
                self.select.args["group"],
                "grouping sets over single units are not answered",
                "A set without the unit's key would mix the rows of many units before noise is "
                "added.",
                "Group by the unit alone here, and use ROLLUP in the query around it.",
            )
        rows = state.max_rows if isinstance(state, Private) and per_unit else None
        self.levels = GroupingCalls(self.context, keys, self.sets)
        self.calls = Calls(self.context, rows, () if self.sets else keys, self.levels)
        self.key_fields = tuple(self._key_field(k) for k in keys)
        self.keys = keys
        items = self._items()
        having = self.select.args.get("having")
        condition = self._condition(having, items) if isinstance(having, exp.Having) else None
        chosen = self._chosen(items)
        order = self._order(items)
        for position, (column, window) in enumerate(self.windows.found):
            over_groups = self.over(window, self.select)
            assert isinstance(over_groups, Window)
            self.windows.found[position] = (column, over_groups)
        relation = self._aggregate(items)
        if condition is not None and having is not None:
            relation = Filter(
                relation,
                condition,
                narrow(relation.fields, condition),
                relation.privacy,
                span_of(having),
            )
        return Body(self._windowed(relation, chosen), items, order)

    def value(self, node: exp.Expr, scope: Scope | None = None) -> Expression:
        """An expression over groups: keys and aggregates only."""
        return self.over(self.scalars(scope).bind(node), node)

    def starred(self, field: Column, node: exp.Expr) -> Expression:
        return self.over(replace(field, span=span_of(node)), node)

    def _condition(self, having: exp.Expr, items: tuple[Item, ...]) -> Expression:
        scope = self._with_outputs(items)
        bound = Scalars(self.context, scope, self.calls).condition(having.this)
        made = {column.number for column, _ in self.windows.found}
        window = next((c for c in columns(bound) if c.number in made), None)
        if window is not None:
            raise refuse(
                "DP100",
                having.this,
                "HAVING cannot use a window function",
                "A window is computed over the groups that HAVING has kept.",
                "Compute it in a subquery, and use WHERE around it.",
            )
        return self.over(bound, having.this)

    def _with_outputs(self, items: tuple[Item, ...]) -> Scope:
        """The scope with the names of outputs, which mean the keys of a row inside aggregates."""
        keys: dict[Expression, Expression] = dict(zip(self.key_fields, self.keys, strict=True))
        own = {f.number for f in self.relation.fields}
        of_rows = {i.name: substitute(i.value, keys.get) for i in items}
        row_aliases = {
            name: value
            for name, value in of_rows.items()
            if all(c.number in own for c in columns(value))
        }
        return replace(super()._with_outputs(items), row_aliases=row_aliases)

    def _every(self) -> list[Expression]:
        """The keys of GROUP BY ALL: the outputs that are neither aggregates nor windows."""
        rowwise = Scalars(self.context, self.scope)
        found: list[Expression] = []
        for node in self.select.expressions:
            inner = node.this if isinstance(node, exp.Alias) else node
            every = star(inner)
            if every is not None:
                table = every.args.get("table") if isinstance(every, exp.Column) else None
                found += self.scope.star(every, None if table is None else fold_name(table))
            elif not holds_aggregate(inner) and inner.find(exp.Window) is None:
                found.append(rowwise.bind(inner))
        return list(dict.fromkeys(found))

    def _key(self, node: exp.Expr) -> Expression:
        """A grouping key: an ordinal, a column, an output alias, or any expression."""
        outputs = self.select.expressions
        position = ordinal(node, len(outputs))
        rowwise = Scalars(self.context, self.scope)
        if position is not None:
            output = outputs[position]
            inner = output.this if isinstance(output, exp.Alias) else output
            return rowwise.bind(inner)
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            name = fold_name(node.this)
            if not any(same(f.name, name) for f in self.scope.fields):
                for output in outputs:
                    if isinstance(output, exp.Alias) and same(output_name(output), name):
                        return rowwise.bind(output.this)
        return rowwise.bind(node)

    def _key_field(self, key: Expression) -> Column:
        if isinstance(key, Column) and not self.sets:
            return key
        name = getattr(key, "name", getattr(key, "function", "key"))
        identifier = any(c.identifier for c in columns(key))
        # In a set without this key its column is NULL.
        shape = key.shape.optional() if self.sets else key.shape
        return self.context.column(str(name), shape, identifier=identifier)

    def over(self, value: Expression, node: exp.Expr) -> Expression:
        """The value with key columns for the keys; any other column of the rows is refused."""
        step(10 * len(self.keys))
        known = dict(zip(self.keys, self.key_fields, strict=True))
        assert self.calls is not None
        made = {f.number for f in self.key_fields} | {c.number for c, _ in self.calls.found}
        made |= {c.number for c, _ in self.windows.found}
        made |= {c.number for c in self.levels.found.values()}
        replaced = substitute(value, known.get)
        for column in columns(replaced):
            if column.number not in made:
                inner = self.select.parent is not None or self.sets
                unit = None if inner else privacy.unit_of_groups(self.relation.privacy, self.keys)
                raise refuse_ungrouped(node, column, grouped=self._is_grouped(), unit=unit)
        return replaced

    def _is_grouped(self) -> bool:
        """Whether the SELECT has GROUP BY, or an aggregate in its list."""
        group = self.select.args.get("group")
        return group is not None or any(holds_aggregate(item) for item in self.select.expressions)

    def _aggregate(self, items: tuple[Item, ...]) -> Relation:
        assert self.calls is not None
        calls = tuple(call for _, call in self.calls.found)
        fields = (*self.key_fields, *self.levels.found.values(), *(c for c, _ in self.calls.found))
        counting = over_rows(Counting(self.relation, self.keys + self.levels.constants, calls))
        keys, calls = counting.keys, counting.calls
        relation = as_inner_calendar_join(counting.relation, keys, calls)
        state = privacy.group_privacy(relation.privacy, keys, fields)
        return Aggregate(
            relation, keys, calls, fields, state,
            span_of(self.select.args.get("group") or self.select.expressions[0]),
            self.levels.with_constants, called=self._called(items),
        )  # fmt: skip

    def _called(self, items: tuple[Item, ...]) -> tuple[str, ...]:
        """The names of the keys for analysts: a column's own name, or the name of an output."""
        shown = {i.value.number: i.name for i in reversed(items) if isinstance(i.value, Column)}
        return self.context.called(*(
            field.name if isinstance(key, Column) else shown.get(field.number, field.name)
            for key, field in zip(self.keys, self.key_fields, strict=True)
        ))  # fmt: skip


def _is_all(node: exp.Expr) -> bool:
    """Whether the item is the keyword ALL: unquoted, this word is never a column's name."""
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        node = node.this
    quoted = isinstance(node, exp.Identifier) and bool(node.args.get("quoted"))
    return isinstance(node, exp.Var | exp.Identifier) and not quoted and node.name.upper() == "ALL"


def _windowed(relation: Relation, windows: Windows) -> Relation:
    if not windows.found:
        return relation
    fields = relation.fields + tuple(c for c, _ in windows.found)
    return Windowed(relation, tuple(w for _, w in windows.found), fields, relation.privacy)
