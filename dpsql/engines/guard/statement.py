"""Statements: where rows come from, whose they are, and where units are mixed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from dpsql.engines.guard.listed import Listed, Place
from dpsql.engines.guard.parts import Node, arguments, conjuncts, constant, equal, everything, named
from dpsql.engines.guard.terms import (
    LIST,
    STORED,
    WHOLE,
    Fact,
    Terms,
    Unsafe,
    kind_of,
    merged,
    plain,
)

PUBLIC, PRIVATE, MEASURED = "public", "private", "measured"
Columns = dict[str, Fact]


class _Every(Columns):
    """The columns of a public table that lists none: all that it has."""

    def __contains__(self, _: object) -> bool:
        return True

    def __getitem__(self, _: str) -> Fact:
        return plain(STORED)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a FROM clause or of a query: columns by alias, and whose they are."""

    sources: tuple[tuple[str, Columns], ...]
    state: str
    parts: int = 0
    kind: str | None = None

    def resolve(self, names: list[str]) -> Fact:
        """The column of a name, the first one where USING has joined several."""
        table = names[0] if len(names) > 1 else None
        column = names[-1] if len(names) < 3 else names[1]
        for alias, columns in self.sources:
            if table in (None, alias) and column in columns:
                found = columns[column]
                return found.fields[names[2]] if len(names) == 3 else found
        raise Unsafe(f"the column {'.'.join(names)}, which is not listed here")

    @property
    def columns(self) -> Columns:
        """All columns, as ``*`` gives them."""
        return {name: fact for _, columns in self.sources for name, fact in columns.items()}


def measured(node: Node, tables: Mapping[Place, Listed], *, steady: bool = False) -> None:
    """Refuse what is not a measurement: keys, and whole numbers of bounded size, by group.

    ``steady`` refuses conditions that decide which private rows are read, too.
    """
    found = _Walk(tables, steady).query(node)
    if found.state != MEASURED:
        raise Unsafe("rows of units, or of none, where a measurement is expected")
    for name, fact in found.columns.items():
        number = fact.kind == WHOLE and fact.bounded
        if re.fullmatch(r"p\d+|units", name) and not (number or fact.kind == LIST):
            raise Unsafe(f"{name}, which is not a bounded whole number")


def public(node: Node, tables: Mapping[Place, Listed]) -> None:
    """Refuse what reads private rows."""
    if _Walk(tables).query(node).state != PUBLIC:
        raise Unsafe("private rows where public ones are expected")


@dataclass(frozen=True, slots=True)
class _Walk:
    """Queries in one scope; ``written`` are the tables that the statement itself has there."""

    tables: Mapping[Place, Listed]
    steady: bool = False
    written: Mapping[str, Rows] = field(default_factory=dict)

    def query(self, node: Node) -> Rows:
        entries = node["cte_map"]["map"]
        return self._defined(entries).within(node) if entries else self.within(node)

    def _defined(self, entries: list[Node]) -> _Walk:
        """The scope with the tables of a WITH, each of which may read those before it.

        Rows that are computed once are whose they were: their columns keep what is certain of
        them. A name stands for one thing, so that nothing is read for something else.
        """
        walk = self
        for entry in entries:
            name, table = entry["key"], entry["value"]
            once = table["materialized"] == "CTE_MATERIALIZE_ALWAYS"
            if not once or table["aliases"] or table["key_targets"] or table["payload_aggregates"]:
                raise Unsafe("a WITH query that is more than rows computed once")
            taken = [*(known for _, known in walk.tables), *walk.written]
            if name.casefold() in map(str.casefold, taken):
                raise Unsafe(f"a WITH query under the name {name}, which there is")
            rows = walk.query(table["query_node"])
            walk = replace(walk, written={**walk.written, name: rows})
        return walk

    def within(self, node: Node) -> Rows:
        if node["type"] == "SET_OPERATION_NODE":
            return self._union(node)
        if node["type"] != "SELECT_NODE":
            raise Unsafe(f"a {node['type']}")
        return self._select(node)

    def _union(self, node: Node) -> Rows:
        sides = [self.query(child) for child in node["children"]]
        states = {side.state for side in sides}
        if PRIVATE in states and (states != {PRIVATE} or not node["setop_all"]):
            raise Unsafe("a set operation over private rows")
        if PRIVATE in states and len({side.kind for side in sides}) > 1:
            raise Unsafe("rows of different kinds of unit in one relation")
        if PRIVATE in states and node["setop_type"] != "UNION":
            raise Unsafe("a set operation over private rows")
        rows = [list(side.columns.items()) for side in sides]
        columns = {name: merged([row[i][1] for row in rows]) for i, (name, _) in enumerate(rows[0])}
        state = next(s for s in (PRIVATE, MEASURED, PUBLIC) if s in states)
        return Rows((("", columns),), state, sides[0].parts, sides[0].kind)

    def _select(self, node: Node) -> Rows:
        if node["qualify"] is not None or node["sample"] is not None:
            raise Unsafe("QUALIFY or a sample")
        if node["aggregate_handling"] != "STANDARD_HANDLING" or len(node["group_sets"]) > 1:
            raise Unsafe("grouping sets")
        rows = self._from(node["from_table"])
        plain = self._terms(rows)
        if node["where_clause"] is not None:
            plain.fact(node["where_clause"])
            if self.steady and rows.state == PRIVATE and not _present(node["where_clause"]):
                raise Unsafe("a condition that decides which private rows are read")
        keys = [plain.fact(self._key(node, key)) for key in node["group_expressions"]]
        grouped = bool(keys) or any(map(_aggregates, node["select_list"]))
        terms, state = plain, rows.state
        if grouped:
            groups = self._groups(rows, keys)
            terms = self._terms(rows, groups)
            state = MEASURED if groups == "all" else state
        if node["having"] is not None:
            terms.fact(node["having"])
        columns = _apart(self._outputs(node, rows, terms))
        self._modifiers(node, rows, columns, state)
        return Rows((("", columns),), state, rows.parts, rows.kind)

    def _terms(self, rows: Rows, groups: str = "none") -> Terms:
        return Terms(rows.resolve, self._listed, groups, rows.parts, rows.state == PRIVATE)

    def _listed(self, node: Node) -> Fact:
        """The list of an IN: constants that came with the statement, or public rows."""
        found = self.query(node["subquery"]["node"])
        if found.state != PUBLIC or node["subquery_type"] != "ANY" or len(found.columns) != 1:
            raise Unsafe("a subquery inside an expression")
        return next(iter(found.columns.values()))

    def _key(self, node: Node, key: Node) -> Node:
        """A key by its position, or as it stands."""
        if key["class"] != "CONSTANT":
            return key
        item: Node = node["select_list"][int(key["literal"]["text"]) - 1]
        return item

    def _groups(self, rows: Rows, keys: list[Fact]) -> str:
        if rows.state != PRIVATE:
            return "free"
        covered: frozenset[int] = frozenset().union(*(k.unit for k in keys))
        return "unit" if rows.parts and len(covered) == rows.parts else "all"

    def _outputs(self, node: Node, rows: Rows, terms: Terms) -> Iterator[tuple[str, Fact]]:
        for position, item in enumerate(node["select_list"]):
            if item["class"] == "STAR":
                if not everything(item):
                    raise Unsafe("a * that is not simply all columns")
                yield from (pair for _, part in rows.sources for pair in part.items())
                continue
            names = item.get("column_names") or [f"column {position}"]
            name = item["alias"] or names[-1]
            if item["class"] == "FUNCTION" and item["function_name"] == "unnest":
                yield name, _unnested(item)
            else:
                yield name, terms.fact(item)

    def _modifiers(self, node: Node, rows: Rows, columns: Columns, state: str) -> None:
        both = Rows((*rows.sources, ("", columns)), state, rows.parts)
        for modifier in node["modifiers"]:
            if modifier["type"] == "ORDER_MODIFIER":
                for order in modifier["orders"]:
                    self._terms(both).fact(order["expression"])
                continue
            covered: frozenset[int] = frozenset().union(*(c.unit for c in columns.values()))
            whole = modifier["type"] == "DISTINCT_MODIFIER" and not modifier["distinct_on_targets"]
            within = whole and rows.parts and len(covered) == rows.parts
            if state == PRIVATE and not within:
                raise Unsafe(f"{modifier['type']} over rows of several units")

    def _from(self, node: Node) -> Rows:
        if node.get("sample") is not None:
            raise Unsafe("a sample")
        match node["type"]:
            case "BASE_TABLE":
                return self._table(node)
            case "SUBQUERY":
                return self._renamed(self.query(node["subquery"]["node"]), node)
            case "JOIN":
                return self._join(node)
            case "EMPTY":
                return Rows((("", {}),), PUBLIC)
            case "EXPRESSION_LIST":
                return self._values(node)
            case "TABLE_FUNCTION":
                return self._series(node)
            case other:
                raise Unsafe(f"a FROM item of type {other}")

    def _table(self, node: Node) -> Rows:
        name = node["table_name"]
        table = self.tables.get((node["schema_name"], name))
        elsewhere = node["catalog_name"] or node["at_clause"] or node["column_name_alias"]
        if name in self.written and not (elsewhere or node["schema_name"]):
            rows = self.written[name]
            return replace(rows, sources=((node["alias"] or name, rows.columns),))
        if table is None or elsewhere:
            raise Unsafe(f"the table {name}, which is not listed")
        columns = dict.fromkeys(table.columns, plain(STORED)) if table.columns else _Every()
        for part, column in enumerate(table.unit):
            columns[column] = Fact(STORED, unit=frozenset({part}))
        for column in table.whole:
            columns[column] = plain(WHOLE, True, True)
        state = PUBLIC if table.kind is None else PRIVATE
        return Rows(((node["alias"] or name, columns),), state, table.parts, table.kind)

    def _renamed(self, rows: Rows, node: Node) -> Rows:
        facts = list(rows.columns.items())
        names = node["column_name_alias"] + [n for n, _ in facts[len(node["column_name_alias"]) :]]
        columns = {name: fact for name, (_, fact) in zip(names, facts, strict=True)}
        return Rows(((node["alias"], columns),), rows.state, rows.parts, rows.kind)

    def _values(self, node: Node) -> Rows:
        if not all(constant(value) for row in node["values"] for value in row):
            raise Unsafe("VALUES of what is not a constant")
        terms = self._terms(Rows((), PUBLIC))
        rows = [terms.facts(row) for row in node["values"]]
        columns = {f"col{i}": merged([row[i] for row in rows]) for i in range(len(rows[0]))}
        return Rows((("", columns),), PUBLIC)

    def _series(self, node: Node) -> Rows:
        function = node["function"]
        if function["function_name"] not in ("range", "generate_series"):
            raise Unsafe(f"the table function {function['function_name']}")
        args = arguments(function)
        if not all(constant(a) for a in args):
            raise Unsafe("a series between what is not constant")
        first = self._terms(Rows((), PUBLIC)).fact(args[0])
        (name,) = node["column_name_alias"]
        return Rows(((node["alias"], {name: replace(first, low=True, high=True)}),), PUBLIC)

    def _join(self, node: Node) -> Rows:
        left, right = self._from(node["left"]), self._from(node["right"])
        kind, using = node["join_type"], node["using_columns"]
        if kind not in ("INNER", "LEFT", "SEMI", "ANTI") or node["ref_type"] not in (
            "REGULAR", "CROSS",
        ):  # fmt: skip
            raise Unsafe(f"a {kind} {node['ref_type']} join")
        states = {left.state, right.state}
        if states == {PRIVATE, MEASURED}:
            raise Unsafe("private rows beside what was measured of them")
        if right.state == PRIVATE and left.state != PRIVATE and kind != "INNER":
            raise Unsafe("rows of no unit, kept by whether a unit has some")
        state = next(s for s in (PRIVATE, MEASURED, PUBLIC) if s in states)
        kinds = {side.kind for side in (left, right)} - {None}
        if state == PRIVATE and len(kinds) > 1:
            raise Unsafe("rows of different kinds of unit in one relation")
        both = Rows(
            left.sources + right.sources, state, max(left.parts, right.parts),
            next(iter(kinds), None),
        )  # fmt: skip
        condition = node["condition"]
        pairs = [] if condition is None else list(equal(condition))
        if condition is not None:
            self._terms(both).fact(condition)
        if states == {PRIVATE} and not (pairs or using):
            raise Unsafe("a join of rows of different units")
        half = kind in ("SEMI", "ANTI")
        if self.steady and state == PRIVATE and (half or not _pairing(condition, left)):
            raise Unsafe("a condition that decides which private rows are joined")
        if half:
            return replace(both, sources=left.sources)
        if kind == "LEFT":
            return replace(both, sources=left.sources + _optional(right.sources))
        return _with_units(both, pairs)


def _apart(found: Iterator[tuple[str, Fact]]) -> Columns:
    """Columns by name. No two may be one name to the engine, which reads the first of them."""
    columns: Columns = {}
    folded = set()
    for name, fact in found:
        if name.lower() in folded:
            raise Unsafe(f"two columns called {name}")
        folded.add(name.lower())
        columns[name] = fact
    return columns


def _optional(sources: tuple[tuple[str, Columns], ...]) -> tuple[tuple[str, Columns], ...]:
    """Columns that are NULL in rows without a partner: no unit's key, since those are many units'."""
    return tuple(
        (alias, {name: replace(fact, unit=frozenset()) for name, fact in columns.items()})
        for alias, columns in sources
    )


def _present(condition: Node) -> bool:
    """Whether a condition only leaves out rows without a key, or without a value."""
    return all(part["type"] == "OPERATOR_IS_NOT_NULL" for part in conjuncts(condition))


def _pairing(condition: Node | None, left: Rows) -> bool:
    """Whether each part of a join's condition compares one side with the other."""
    if condition is None:
        return True
    mine = {alias for alias, _ in left.sources}
    return all(
        0 < len([t for t in tables if t in mine]) < len(tables)
        for part in conjuncts(condition)
        for tables in [{names[0] for names in named(part)}]
    )


def _unnested(item: Node) -> Fact:
    """Rows or values that came with the statement."""
    (value,) = arguments(item)
    if value["class"] != "CAST" or value["child"]["class"] != "PARAMETER":
        raise Unsafe("unnest of what is not a parameter")
    return kind_of(value["type_expr"])


def _aggregates(node: object) -> bool:
    """Whether an aggregate stands in an expression, outside of windows and subqueries."""
    if isinstance(node, list):
        return any(map(_aggregates, node))
    if not isinstance(node, dict) or node.get("class") in _WITHOUT:
        return False
    if node.get("function_name") in _NAMES:
        return True
    return any(_aggregates(v) for k, v in node.items() if k not in _NO_PARTS and v)


_WITHOUT = frozenset(["COLUMN_REF", "CONSTANT", "PARAMETER", "WINDOW", "SUBQUERY"])
_NO_PARTS = frozenset(["class", "type", "alias", "type_expr", "qualified_name", "try_cast"])
"""What no expression is part of."""
_NAMES = frozenset(
    [
        "count",
        "count_star",
        "sum",
        "avg",
        "min",
        "max",
        "var_pop",
        "var_samp",
        "stddev_pop",
        "stddev_samp",
        "quantile_cont",
        "quantile_disc",
        "bool_and",
        "bool_or",
        "count_if",
        "list",
        "bit_or",
    ]
)


def _with_units(rows: Rows, pairs: list[tuple[list[str], list[str]]]) -> Rows:
    """Rows whose equal columns all hold the key that one of them holds."""
    sources = [(alias, dict(columns)) for alias, columns in rows.sources]
    for _ in pairs:
        for one, other in pairs:
            unit = rows.resolve(one).unit | rows.resolve(other).unit
            for names in (one, other):
                for alias, columns in sources:
                    if names[0] == alias and len(names) == 2 and names[1] in columns:
                        columns[names[1]] = replace(columns[names[1]], unit=unit)
            rows = replace(rows, sources=tuple(sources))
    return rows
