"""Statements: the sources of their rows, the units of the rows, and where units are mixed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from dpsql.engines.duckdb.guard.facts import (
    LIST,
    STORED,
    WHOLE,
    Fact,
    Unsafe,
    hide_fact,
    kind_of,
    merge_facts,
)
from dpsql.engines.duckdb.guard.identifiers import made_of
from dpsql.engines.duckdb.guard.joins import join_rows, state_of
from dpsql.engines.duckdb.guard.listed import Listed, Place
from dpsql.engines.duckdb.guard.parts import (
    Node,
    arguments,
    conjuncts,
    constant,
    find_column_names,
    is_plain_star,
)
from dpsql.engines.duckdb.guard.rows import Columns, Every, Rows, anew, apart, apply_condition
from dpsql.engines.duckdb.guard.sums import AGGREGATES, COUNTING, OF_PUBLIC, present
from dpsql.engines.duckdb.guard.terms import MEASURED, PRIVATE, PUBLIC, Terms
from dpsql.engines.duckdb.guard.ties import refuse_ties


def check_measurement(
    node: Node, tables: Mapping[Place, Listed], *, steady: bool = False, few: bool = False
) -> None:
    """Refuse a statement that is no measurement, which has keys and bounded whole numbers by group.

    ``steady`` also refuses conditions that decide which private rows are read. ``few`` says that
    no table is large.
    """
    found = _Walk(tables, steady, few).query(node)
    if found.state != MEASURED:
        raise Unsafe("rows of units, or of none, where a measurement is expected")
    for name, fact in found.columns.items():
        waits = re.fullmatch(r"p\d+|units", name)
        number = (fact.kind == WHOLE and fact.bounded and fact.exact) or fact.kind == LIST
        if waits and not number:
            raise Unsafe(f"{name}, which is not a bounded whole number")
        if not waits and (fact.exact or not re.fullmatch(r"k\d+", name)):
            raise Unsafe(f"{name}, which neither is a key nor gets noise")
        if not waits and not fact.identical:
            raise Unsafe(f"{name}, a key of which equal values are not the same bytes")


def public(node: Node, tables: Mapping[Place, Listed]) -> None:
    """Refuse a statement that reads private rows."""
    if _Walk(tables).query(node).state != PUBLIC:
        raise Unsafe("private rows where public ones are expected")


@dataclass(frozen=True, slots=True)
class _Walk:
    """The check of queries in one scope. ``written`` has the statement's common tables there."""

    tables: Mapping[Place, Listed]
    steady: bool = False
    few: bool = False
    written: Mapping[str, Rows] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    """The numbers of readings: each reading of a table has its own."""

    def query(self, node: Node) -> Rows:
        entries = node["cte_map"]["map"]
        return self._defined(entries).within(node) if entries else self.within(node)

    def _defined(self, entries: list[Node]) -> _Walk:
        """The scope with the tables of a WITH, each of which may read those before it.

        Rows under a name keep their units and the facts of their columns, whether they are computed
        once or in each place. A name must have one meaning only, so that no table is taken for
        another.
        """
        walk = self
        for entry in entries:
            name, table = entry["key"], entry["value"]
            said = table["materialized"] in ("CTE_MATERIALIZE_ALWAYS", "CTE_MATERIALIZE_NEVER")
            if not said or table["aliases"] or table["key_targets"] or table["payload_aggregates"]:
                raise Unsafe("a WITH query that is more than rows under a name")
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
        whole = node["setop_type"] == "UNION" and node["setop_all"]
        if states != {PUBLIC} and (len(states) > 1 or not whole):
            raise Unsafe("a set operation over private rows, or what was measured of them")
        if states == {PRIVATE} and len({side.kind for side in sides}) > 1:
            raise Unsafe("rows of different kinds of unit in one relation")
        rows = [list(side.columns.items()) for side in sides]
        columns = {
            name: merge_facts([row[i][1] for row in rows]) for i, (name, _) in enumerate(rows[0])
        }
        hides = any(side.hides for side in sides)
        strays = any(side.strays for side in sides)
        return replace(
            sides[0],
            sources=(("", columns),),
            hides=hides,
            strays=strays,
            above=False,
            grouped=None,
        )

    def _select(self, node: Node) -> Rows:
        if node["qualify"] is not None or node["sample"] is not None:
            raise Unsafe("QUALIFY or a sample")
        rows = self._from(node["from_table"])
        several = len(node["group_sets"]) > 1 and rows.state != PUBLIC
        if node["aggregate_handling"] != "STANDARD_HANDLING" or several:
            raise Unsafe("grouping sets over other rows than public ones")
        plain = self._terms(rows)
        if node["where_clause"] is not None:
            plain.condition(node["where_clause"])
            if self.steady and rows.state == PRIVATE and not _present(node["where_clause"]):
                raise Unsafe("a condition that decides which private rows are read")
        rows = apply_condition(rows, node["where_clause"])
        keys = [self._key(node, key) for key in node["group_expressions"]]
        facts = plain.facts(keys)
        _same(facts, rows.state)
        terms, state, groups = plain, rows.state, "none"
        if keys or any(map(_aggregates, node["select_list"])):
            groups = self._groups(rows, facts)
            terms = self._terms(rows, groups)
            state = MEASURED if groups == "all" else state
        if groups == "all":
            _mixed(rows, keys)
        above = self._having(node, terms)
        if above:
            terms = replace(terms, guarded=above)
        columns = apart(self._outputs(node, rows, terms))
        refuse_ties(node["select_list"], rows, terms)
        self._modifiers(node, rows, columns, state)
        if keys or node["modifiers"]:
            columns = {name: _picked(fact, rows.state) for name, fact in columns.items()}
        many = bool(above) and groups in ("unit", "few") and len(keys) == rows.parts
        read = (node["from_table"], node["where_clause"])
        if rows.read is not None and read[1] is None:
            read = rows.read
        return Rows(
            (("", columns),), state, rows.parts, rows.kind, above=many,
            hides=rows.hides and state == PRIVATE, strays=rows.strays and state == PRIVATE,
            read=read, grouped=_grouped(node, keys, columns),
        )  # fmt: skip

    def _having(self, node: Node, terms: Terms) -> tuple[tuple[Node, int, None], ...]:
        """The counts that a condition on groups requires to be above constants."""
        having = node["having"]
        if having is None:
            return ()
        if not (terms.groups == "all" and present(having)):
            terms.condition(having)
        aliases = {item["alias"].lower() for item in node["select_list"]}
        if any(
            names[0].lower() in aliases for names in find_column_names(having) if len(names) == 1
        ):
            raise Unsafe("a HAVING that reads the list of columns")
        return tuple(
            (part["left"], int(part["right"]["literal"]["text"]) + 1, None)
            for part in conjuncts(having)
            if part["type"] == "COMPARE_GREATERTHAN"
            and part["left"].get("function_name") in COUNTING
            and part["right"].get("literal", {}).get("kind") == "INTEGER"
        )

    def _terms(self, rows: Rows, groups: str = "none") -> Terms:
        return Terms(rows.resolve, self._listed, groups, rows.parts, rows.state, few=self.few)

    def _listed(self, node: Node) -> Fact:
        """The list of an IN: constants that were passed with the statement, or public rows."""
        found = self.query(node["subquery"]["node"])
        if found.state != PUBLIC or node["subquery_type"] != "ANY" or len(found.columns) != 1:
            raise Unsafe("a subquery inside an expression")
        return next(iter(found.columns.values()))

    def _key(self, node: Node, key: Node) -> Node:
        """The expression of a key. A whole number is a position; other constants are not."""
        if key["class"] != "CONSTANT" or key["literal"]["kind"] != "INTEGER":
            return key
        position = int(key["literal"]["text"])
        if not 1 <= position <= len(node["select_list"]):
            raise Unsafe("a key by the place of no column")
        item: Node = node["select_list"][position - 1]
        return item

    def _groups(self, rows: Rows, keys: list[Fact]) -> str:
        if rows.state != PRIVATE:
            return "measured" if rows.state == MEASURED else "free"
        covered: frozenset[int] = frozenset().union(*(k.unit for k in keys))
        if not rows.parts or len(covered) < rows.parts:
            return "all"
        return "few" if rows.few else "unit"

    def _outputs(self, node: Node, rows: Rows, terms: Terms) -> Iterator[tuple[str, Fact]]:
        for position, item in enumerate(node["select_list"]):
            if item["class"] == "STAR":
                if not is_plain_star(item):
                    raise Unsafe("a * that is not simply all columns")
                yield from (pair for _, part in rows.sources for pair in part.items())
                continue
            names = item.get("column_names") or [f"column {position}"]
            name = item["alias"] or names[-1]
            if item["class"] == "FUNCTION" and item["function_name"] == "unnest":
                yield name, _unnested(item)
            else:
                fact = terms.any({**item, "alias": ""} if terms.guarded else item)
                yield name, fact if not rows.hides or _shown(item, rows) else hide_fact(fact)

    def _modifiers(self, node: Node, rows: Rows, columns: Columns, state: str) -> None:
        for modifier in node["modifiers"]:
            if modifier["type"] == "ORDER_MODIFIER":
                both = replace(rows, sources=(("", columns), *rows.sources), state=state)
                for order in modifier["orders"]:
                    self._terms(both).fact(_no_place(order["expression"]))
                continue
            _same(list(columns.values()), state)
            covered: frozenset[int] = frozenset().union(*(c.unit for c in columns.values()))
            whole = modifier["type"] == "DISTINCT_MODIFIER" and not modifier["distinct_on_targets"]
            within = whole and state == PRIVATE and rows.parts and len(covered) == rows.parts
            if state != PUBLIC and not within:
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
            rows = anew(self.written[name], self.numbers)
            return rows.under(node["alias"] or name, rows.columns)
        if table is None or elsewhere:
            raise Unsafe(f"the table {name}, which is not listed")
        columns = dict(table.facts) if table.columns else Every()
        columns.update(table.read(next(self.numbers)))
        state = PUBLIC if table.kind is None else PRIVATE
        return Rows(
            ((node["alias"] or name, columns),), state, table.parts, table.kind,
            hides=bool(table.identifiers), strays=table.strays,
        )  # fmt: skip

    def _renamed(self, rows: Rows, node: Node) -> Rows:
        facts = list(rows.columns.items())
        names = node["column_name_alias"] + [n for n, _ in facts[len(node["column_name_alias"]) :]]
        if node["column_name_alias"]:
            rows = replace(rows, grouped=None)
        columns = {name: fact for name, (_, fact) in zip(names, facts, strict=True)}
        return rows.under(node["alias"], columns)

    def _values(self, node: Node) -> Rows:
        if not all(constant(value) for row in node["values"] for value in row):
            raise Unsafe("VALUES of what is not a constant")
        terms = self._terms(Rows((), PUBLIC))
        rows = [terms.facts(row) for row in node["values"]]
        columns = {f"col{i}": merge_facts([row[i] for row in rows]) for i in range(len(rows[0]))}
        return Rows((("", columns),), PUBLIC)

    def _series(self, node: Node) -> Rows:
        function = node["function"]
        if function["function_name"] not in ("range", "generate_series"):
            raise Unsafe(f"the table function {function['function_name']}")
        args = arguments(function)
        if not all(constant(a) for a in args):
            raise Unsafe("a series between what is not constant")
        ends = self._terms(Rows((), PUBLIC)).facts(args[:2])
        (name,) = node["column_name_alias"]
        return Rows(((node["alias"], {name: merge_facts(ends)}),), PUBLIC)

    def _join(self, node: Node) -> Rows:
        left, right = self._from(node["left"]), self._from(node["right"])
        both = Rows(left.sources + right.sources, state_of({left.state, right.state}))
        return join_rows(left, right, node, self._terms(both), steady=self.steady)


def _grouped(node: Node, keys: list[Node], columns: Columns) -> frozenset[str] | None:
    """The columns that a query's rows are distinct or grouped by; None unless it returns all."""
    if any(
        m["type"] == "DISTINCT_MODIFIER" and not m["distinct_on_targets"] for m in node["modifiers"]
    ):
        return frozenset(columns)
    bare = [{**key, "alias": ""} for key in keys]
    shown = {
        bare.index(part): item["alias"] or item.get("column_names", [""])[-1]
        for item in node["select_list"]
        if (part := {**item, "alias": ""}) in bare
    }
    return frozenset(shown.values()) if keys and len(shown) == len(bare) else None


def _present(condition: Node) -> bool:
    """Whether a condition only leaves out rows with NULL."""
    return all(part["type"] == "OPERATOR_IS_NOT_NULL" for part in conjuncts(condition))


def _mixed(rows: Rows, keys: list[Node]) -> None:
    """Refuse to group rows of several units if some have no unit, or if a key names people."""
    if rows.strays:
        raise Unsafe("rows whose unit may be NULL, counted")
    if rows.hides and not all(_shown(key, rows) for key in keys):
        raise Unsafe("a group that is named by what identifies people")


def _same(keys: list[Fact], state: str) -> None:
    """Refuse to group rows of units by values that may be equal but have different bytes.

    The first row's value would be returned for all. Stored columns are allowed, but nothing may
    tell their equal values apart afterwards: see ``_picked``.
    """
    if state != PUBLIC and not all(key.identical or key.kind == STORED for key in keys):
        raise Unsafe("rows put together by what has equal values that are not the same bytes")


def _picked(fact: Fact, state: str) -> Fact:
    """The fact of a column of grouped rows. A stored column may be one of several equal values."""
    chosen = state != PUBLIC and fact.kind == STORED and not fact.identical
    return replace(fact, picked=True) if chosen else fact


def _no_place(order: Node) -> Node:
    """The expression of an order. A constant is refused: it would be the position of a column."""
    if order["class"] == "CONSTANT":
        raise Unsafe("an order by the place of a column")
    return order


def _shown(node: Node, rows: Rows) -> bool:
    """Whether an expression may name a group."""
    return all(rows.resolve(names).shown for names in made_of(node))


def _unnested(item: Node) -> Fact:
    """The fact of rows or values that were passed with the statement."""
    (value,) = arguments(item)
    if value["class"] != "CAST" or value["child"]["class"] != "PARAMETER":
        raise Unsafe("unnest of what is not a parameter")
    return kind_of(value["type_expr"])


def _aggregates(node: object) -> bool:
    """Whether an expression has an aggregate outside of windows and subqueries."""
    if isinstance(node, list):
        return any(map(_aggregates, node))
    if not isinstance(node, dict) or node.get("class") in _WITHOUT:
        return False
    if node.get("function_name") in _AGGREGATES:
        return True
    return any(_aggregates(v) for k, v in node.items() if k not in _NO_PARTS and v)


_AGGREGATES = frozenset([*AGGREGATES, *OF_PUBLIC])
_WITHOUT = frozenset(["COLUMN_REF", "CONSTANT", "PARAMETER", "WINDOW", "SUBQUERY"])
_NO_PARTS = frozenset(["class", "type", "alias", "type_expr", "qualified_name", "try_cast"])
"""Fields of a node that contain no expression."""
