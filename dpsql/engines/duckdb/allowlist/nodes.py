"""The forms of syntax that engines offer to clients: every node, and every field of each.

All other forms are refused: PIVOT, DESCRIBE and SUMMARIZE as relations, samples, COLUMNS, changes
to ``*``, positional and ASOF joins, named arguments, other versions of a table, and all new forms.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpsql.engines.duckdb.allowlist.listing import Listing, NotListed
from dpsql.engines.duckdb.allowlist.rules import (
    Rule,
    Scope,
    Task,
    check_listed_name,
    choice,
    each,
    flag,
    form,
    number,
    optional,
    record,
    require_empty,
    text,
    words,
)

VALUES = frozenset({
    "current_catalog", "current_database", "current_date", "current_role", "current_schema",
    "current_time", "current_timestamp", "current_user", "localtime", "localtimestamp",
    "session_user", "user",
})  # fmt: skip
"""Names that the engine computes itself if no column has that name."""
_CALLED = ("catalog", "schema", "function_name")
_NAMED = {"unnest": frozenset({"recursive"})}
"""The named arguments of each function; those of ``struct_pack`` may have any name."""

_expressions: dict[str, Rule] = {}
_relations: dict[str, Rule] = {}
_queries: dict[str, Rule] = {}
EXPRESSION = choice("class", _expressions)
RELATION = choice("type", _relations)
QUERY = choice("type", _queries)
_COMPARED = (
    "COMPARE_EQUAL COMPARE_NOTEQUAL COMPARE_LESSTHAN COMPARE_GREATERTHAN COMPARE_LESSTHANOREQUALTO"
    " COMPARE_GREATERTHANOREQUALTO"
)
_SOME, _ALL = optional(EXPRESSION), each(EXPRESSION)
_STATEMENT = record(
    {"node": QUERY, "named_param_map": each(record({"key": text, "value": number}))}
)
_PLACE: dict[str, Rule] = {"query_location": number, "query_location_length": number}


def _checked(*_: Any) -> Iterable[Task]:
    """The rule of a field that its node's own rule checks."""
    return ()


_ORDER = record({
    "type": words("ORDER_DEFAULT ASCENDING DESCENDING"),
    "null_order": words("ORDER_DEFAULT,NULLS FIRST,NULLS LAST", ","),
    "expression": EXPRESSION,
})  # fmt: skip
_ORDERS = record({"type": words("ORDER_MODIFIER"), "orders": each(_ORDER)})
_MODIFIER = choice("type", {
    "ORDER_MODIFIER": _ORDERS,
    "LIMIT_MODIFIER": record({
        "type": text, "limit": _SOME, "offset": _SOME, "limit_type": words("ROW_COUNT"),
    }),
    "DISTINCT_MODIFIER": record({"type": text, "distinct_on_targets": _ALL}),
})  # fmt: skip


def _expression(name: str, types: str, **fields: Rule) -> Rule:
    """Define a class of expressions, with its own fields."""
    own = {"class": text, "type": words(types), "alias": text, **_PLACE, **fields}
    _expressions[name] = record(own)
    return _expressions[name]


_expression(
    "CONSTANT", "VALUE_CONSTANT",
    literal=record({
        "kind": words("STRING INTEGER NUMERIC NULL_LITERAL BOOLEAN HEX BIT"),
        "text": text,
    }),
)  # fmt: skip
_expression("PARAMETER", "VALUE_PARAMETER", identifier=text)
_expression("POSITIONAL_REFERENCE", "POSITIONAL_REFERENCE", index=number)
_expression(
    "COMPARISON",
    f"{_COMPARED} COMPARE_DISTINCT_FROM COMPARE_NOT_DISTINCT_FROM",
    left=EXPRESSION,
    right=EXPRESSION,
)
_expression("CONJUNCTION", "CONJUNCTION_AND CONJUNCTION_OR", children=_ALL)
_expression("BETWEEN", "COMPARE_BETWEEN", input=EXPRESSION, lower=EXPRESSION, upper=EXPRESSION)
_expression(
    "CASE", "CASE_EXPR",
    case_checks=each(record({"when_expr": EXPRESSION, "then_expr": EXPRESSION})),
    else_expr=EXPRESSION,
)  # fmt: skip
_expression(
    "OPERATOR",
    "COMPARE_IN COMPARE_NOT_IN OPERATOR_NOT OPERATOR_IS_NULL OPERATOR_IS_NOT_NULL OPERATOR_TRY"
    " OPERATOR_COALESCE ARRAY_CONSTRUCTOR ARRAY_EXTRACT ARRAY_SLICE STRUCT_EXTRACT"
    " GROUPING_FUNCTION",
    children=_ALL,
)
_expression(
    "SUBQUERY", "SUBQUERY",
    subquery_type=words("SCALAR EXISTS NOT_EXISTS ANY"), subquery=_STATEMENT, child=_SOME,
    comparison_type=words(f"INVALID {_COMPARED}"),
)  # fmt: skip
_STAR = record({
    "class": words("STAR"), "type": words("STAR"), "alias": text, **_PLACE, "relation_name": text,
    "exclude_list": require_empty, "replace_list": require_empty, "columns": require_empty, "expr": require_empty,
    "qualified_exclude_list": require_empty, "rename_list": require_empty,
})  # fmt: skip
_ITEM = choice("class", _items := {"STAR": _STAR})


# -- names

_COLUMN = _expression("COLUMN_REF", "COLUMN_REF", column_names=each(text))


def _column(node: Any, scope: Scope, listing: Listing) -> Iterable[Task]:
    """A column. A bare name must not be one that the engine computes itself."""
    due, names = _COLUMN(node, scope, listing), node["column_names"]
    bare = names[0].lower() if len(names) == 1 else ""
    if bare in VALUES and bare not in listing.columns:
        raise NotListed("column", bare)
    return due


_expressions["COLUMN_REF"] = _column

_TYPE = record({
    "class": words("TYPE"), "type": words("TYPE"), "alias": text, **_PLACE, "catalog": require_empty,
    "schema": require_empty, "type_name": text, "children": _ALL, "qualified_name": _checked,
})  # fmt: skip


def _type(node: Any, scope: Scope, listing: Listing) -> Iterable[Task]:
    """A listed type, or a list of one. Sizes must be constants."""
    due = _TYPE(node, scope, listing)
    check_listed_name("type", node, ("catalog", "schema", "type_name"), listing.types)
    if any(child["class"] not in ("TYPE", "CONSTANT") for child in node["children"]):
        raise form("a type that is computed")
    return due


_expressions["TYPE"] = _type
_expression(
    "CAST", "OPERATOR_CAST", child=EXPRESSION, try_cast=flag,
    type_expr=choice("class", {"TYPE": _type}),
)  # fmt: skip

_ARGUMENT = record({"name": text, "expression": EXPRESSION})
_CALL = record({
    "class": words("FUNCTION"), "type": words("FUNCTION"), "alias": text, **_PLACE,
    "function_name": text, "schema": require_empty, "catalog": require_empty, "filter": _SOME,
    "order_bys": _ORDERS, "distinct": flag, "is_operator": flag, "export_state": require_empty,
    "arguments": each(_ARGUMENT), "qualified_name": _checked,
})  # fmt: skip


def _arguments(node: Any, name: str) -> None:
    """Refuse named arguments, except those of a few functions."""
    names = {argument["name"] for argument in node["arguments"]} - {""}
    if name != "struct_pack" and not names <= _NAMED.get(name, frozenset()):
        raise form(f"{name} with named arguments")


def _call(node: Any, scope: Scope, listing: Listing) -> Iterable[Task]:
    """A function or an aggregate, by its bare name."""
    due = _CALL(node, scope, listing)
    name = check_listed_name("function", node, _CALLED, listing.functions)
    _arguments(node, name)
    return due


def _rows(node: Any, scope: Scope, listing: Listing) -> Iterable[Task]:
    """A function in FROM."""
    due = _CALL(node, scope, listing)
    name = check_listed_name("function", node, _CALLED, listing.rows)
    _arguments(node, name)
    return due


_expressions["FUNCTION"] = _call
_ENDS = words(
    "UNBOUNDED_PRECEDING UNBOUNDED_FOLLOWING CURRENT_ROW_RANGE CURRENT_ROW_ROWS CURRENT_ROW_GROUPS"
    " EXPR_PRECEDING_ROWS EXPR_FOLLOWING_ROWS EXPR_PRECEDING_RANGE EXPR_FOLLOWING_RANGE"
    " EXPR_PRECEDING_GROUPS EXPR_FOLLOWING_GROUPS"
)
_WINDOW = record({
    "class": text, "alias": text, **_PLACE, "function_name": text, "schema": require_empty,
    "type": words(
        "WINDOW_AGGREGATE WINDOW_ROW_NUMBER WINDOW_RANK WINDOW_RANK_DENSE WINDOW_PERCENT_RANK"
        " WINDOW_CUME_DIST WINDOW_NTILE WINDOW_FIRST_VALUE WINDOW_LAST_VALUE WINDOW_NTH_VALUE"
        " WINDOW_LAG WINDOW_LEAD"
    ),
    "catalog": require_empty, "partitions": _ALL, "orders": each(_ORDER), "start": _ENDS, "end": _ENDS,
    "start_expr": _SOME, "end_expr": _SOME, "offset_expr": _SOME, "default_expr": _SOME,
    "ignore_nulls": require_empty, "has_ignore_nulls": require_empty, "filter_expr": _SOME,
    "exclude_clause": words("NO_OTHER"), "distinct": flag, "arg_orders": each(_ORDER),
    "arguments": each(record({"name": require_empty, "expression": EXPRESSION})),
    "qualified_name": _checked,
})  # fmt: skip


def _window(node: Any, scope: Scope, listing: Listing) -> Iterable[Task]:
    """A function over a window."""
    due = _WINDOW(node, scope, listing)
    check_listed_name("function", node, _CALLED, listing.windows)
    return due


_expressions["WINDOW"] = _window
_expression(
    "LAMBDA", "LAMBDA", lhs=EXPRESSION, expr=EXPRESSION,
    syntax_type=words("SINGLE_ARROW LAMBDA_KEYWORD"),
)  # fmt: skip

# -- relations

_FROM: dict[str, Rule] = {"type": text, "alias": text, "sample": require_empty, **_PLACE}
_relations["EMPTY"] = record(_FROM)
_relations["SUBQUERY"] = record({**_FROM, "subquery": _STATEMENT, "column_name_alias": each(text)})
_relations["EXPRESSION_LIST"] = record(
    {
        **_FROM,
        "values": each(_ALL),
        "expected_names": require_empty,
        "expected_types": require_empty,
    }
)
_relations["TABLE_FUNCTION"] = record({
    **_FROM, "function": _rows, "column_name_alias": each(text),
    "with_ordinality": words("WITHOUT_ORDINALITY WITH_ORDINALITY"),
})  # fmt: skip


def _one(value: Any, *_: Any) -> Iterable[Task]:
    """The value 1, which every join has that is not by nearness."""
    if value != 1:
        raise form("a join by nearness")
    return ()


def _join_type(value: Any, _: Scope, listing: Listing) -> Iterable[Task]:
    """One of the listed words before JOIN."""
    if not isinstance(value, str) or value not in listing.joins:
        raise form(value)
    return ()


_relations["JOIN"] = record({
    **_FROM, "left": RELATION, "right": RELATION, "condition": _SOME,
    "join_type": _join_type,
    "ref_type": words("REGULAR CROSS NATURAL"), "using_columns": each(text),
    "delim_flipped": require_empty, "duplicate_eliminated_columns": require_empty, "is_implicit": flag,
    "ranking_expression": require_empty, "nearest_count": _one,
    "nearest_order_type": words("ASCENDING"), "nearest_approx": require_empty,
})  # fmt: skip
_TABLE = record({
    **_FROM, "schema_name": text, "table_name": text, "column_name_alias": each(text),
    "catalog_name": require_empty, "at_clause": require_empty, "qualified_name": _checked,
})  # fmt: skip


def _table(node: Any, scope: Scope, listing: Listing) -> Iterable[Task]:
    """A listed relation or a query of WITH. It is never a file, whose name would be a text."""
    due = _TABLE(node, scope, listing)
    schema, name = node["schema_name"].lower(), node["table_name"].lower()
    written = [part for part in (node["schema_name"], node["table_name"]) if part]
    known = (schema, name) in listing.relations or (not schema and name in scope)
    if not known or node["catalog_name"] or node["qualified_name"] != {"path": written}:
        raise NotListed("relation", ".".join([*filter(None, [node["catalog_name"]]), *written]))
    return due


_relations["BASE_TABLE"] = _table

# -- queries

_DEFINED = record({
    "aliases": each(text), "query_node": QUERY, "key_targets": require_empty, "payload_aggregates": require_empty,
    "materialized": words(
        "CTE_MATERIALIZE_DEFAULT CTE_MATERIALIZE_ALWAYS CTE_MATERIALIZE_NEVER"
    ),
})  # fmt: skip
_BODY: dict[str, Rule] = {"type": text, "modifiers": each(_MODIFIER), "cte_map": _checked}
_BODIES = {
    "SELECT_NODE": record({
        **_BODY, "select_list": each(_ITEM), "from_table": RELATION, "where_clause": _SOME,
        "group_expressions": _ALL, "group_sets": each(each(number)),
        "aggregate_handling": words("STANDARD_HANDLING"), "having": _SOME, "sample": require_empty,
        "qualify": require_empty,
    }),
    "SET_OPERATION_NODE": record({
        **_BODY, "setop_type": words("UNION INTERSECT EXCEPT"), "setop_all": flag,
        "left": require_empty, "right": require_empty, "children": each(QUERY),
    }),
    "RECURSIVE_CTE_NODE": record({
        **_BODY, "cte_name": text, "union_all": flag, "left": QUERY, "right": require_empty,
        "aliases": each(text), "key_targets": require_empty,
    }),
}  # fmt: skip


def _query(node: Any, scope: Scope, listing: Listing) -> Iterable[Task]:
    """A query in the scope of its own WITH. Each query of WITH may read those before it."""
    due = list[Task]()
    if node["cte_map"].keys() != {"map"}:
        raise form("WITH")
    for entry in node["cte_map"]["map"]:
        name = str(entry["key"]).lower()
        if entry.keys() != {"key", "value"} or name in listing.hidden:
            raise NotListed("relation", name)
        due.append(Task(_DEFINED, entry["value"], scope))
        scope |= {name}
    if node["type"] == "RECURSIVE_CTE_NODE":
        due.append(Task(QUERY, node["right"], scope | {str(node["cte_name"]).lower()}))
        node = {**node, "right": None}
    return [*due, Task(_BODIES[node["type"]], node, scope)]


_queries.update(dict.fromkeys(_BODIES, _query))
_items.update(_expressions)
