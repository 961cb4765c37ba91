"""Whether the rows of a relation follow from the database file alone.

A policy's declarations are verified once for a file. A view that reads the current time would have
other rows later, and what was verified would no longer be true.

Claim: a relation that ``unsteady`` does not name has the same rows as long as the file is the same.
Argument: the definition of a view, and the expression of a generated column, is in the closed world
    of the allowlist. It calls listed functions only, reads relations of the file only, and selects
    no rows by the order in which they come. The same holds for the views that it reads.
    ``check_macros`` refuses a file that gives a function of the engine another meaning.
Assumes: the functions in ``STEADY`` depend on their arguments alone. Sums of doubles may differ in
    their last digits from one reading to another: ``computed_views`` names the views with such values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import duckdb

from dpsql.diagnostics.quote import quote
from dpsql.diagnostics.refusal import SourceMismatch
from dpsql.engines.duckdb.allowlist import OPERATORS, PLAIN_TYPES, Listing, NotListed
from dpsql.engines.duckdb.allowlist.walk import walk
from dpsql.engines.duckdb.collations import BYTE_BY_BYTE
from dpsql.engines.duckdb.syntax_tree import Node, Unreadable, own_views, query_tree

_SCALARS = frozenset({
    "abs", "ascii", "cbrt", "ceil", "ceiling", "chr", "coalesce", "concat", "concat_ws", "contains",
    "date_diff", "date_trunc", "datediff", "datepart", "datetrunc", "day", "dayname", "dayofmonth",
    "dayofweek", "dayofyear", "ends_with", "epoch", "epoch_ms", "epoch_us", "exp", "floor", "greatest",
    "hour", "instr", "isfinite", "isinf", "isnan", "isodow", "isoyear", "last_day", "least", "left",
    "length", "ln", "log", "log10", "log2", "lower", "lpad", "make_date", "make_timestamp", "md5",
    "minute", "mod", "month", "monthname", "pow", "power", "prefix", "quarter", "regexp_extract",
    "regexp_replace", "repeat", "replace", "reverse", "right", "round", "rpad", "second", "sha256",
    "sign", "split_part", "sqrt", "starts_with", "strftime", "strlen", "strpos", "strptime", "substr",
    "suffix", "to_timestamp", "translate", "try_strptime", "upper", "week", "weekday", "weekofyear",
    "year", "yearweek",
})  # fmt: skip
_AGGREGATES = frozenset({
    "avg", "bool_and", "bool_or", "count", "count_if", "count_star", "max", "median", "min",
    "quantile_cont", "quantile_disc", "stddev", "stddev_pop", "stddev_samp", "sum", "var_pop",
    "var_samp", "variance",
})  # fmt: skip
STEADY = Listing(
    relations=frozenset(),
    functions=OPERATORS | _SCALARS | _AGGREGATES,
    rows=frozenset({"generate_series", "range", "unnest"}),
    windows=frozenset({"cume_dist", "dense_rank", "percent_rank", "rank"}),
    types=PLAIN_TYPES,
)
"""The names that definitions may use. No window has a frame, as its rows may depend on order."""
_NAME = r'(?:"(?:[^"]|"")*"|\w+)'
_VIEW = re.compile(
    rf"CREATE VIEW {_NAME}(?:\.{_NAME})*(?: \({_NAME}(?:, {_NAME})*\))? AS (.*);", re.DOTALL
)
"""The statement that the engine shows for a view."""
_BY_ORDER = frozenset({"LIMIT_MODIFIER"})
_VIEWS = "SELECT view_name, schema_name, sql FROM system.main.duckdb_views()"
_TABLES = "SELECT table_name, schema_name FROM system.main.duckdb_tables()"
_GENERATED = (
    "SELECT table_name, generation_expression FROM system.main.duckdb_columns()"
    " WHERE is_generated AND generation_expression IS NOT NULL"
)
_HERE = "NOT internal AND database_name = current_database()"


def check_macros(root: duckdb.DuckDBPyConnection) -> None:
    """Refuse a file with macros named like functions of the engine: statements would call them."""
    asked = "SELECT DISTINCT function_name FROM system.main.duckdb_functions() WHERE"
    made = [str(name) for (name,) in root.execute(f"{asked} NOT internal").fetchall()]
    if not made:
        return
    own = {str(name).lower() for (name,) in root.execute(f"{asked} internal").fetchall()}
    own |= STEADY.functions | STEADY.rows
    taken = sorted(name for name in made if name.lower() in own)
    if taken:
        names = ", ".join(quote(name) for name in taken)
        raise SourceMismatch(
            f"the database has macros that are called like functions of the engine ({names}): every"
            " statement would call them instead; drop them, or give them other names"
        )


def unsteady(cursor: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Relations (in lower case) whose rows depend on more than the file, and why. Reads no row."""
    views = cursor.execute(f"{_VIEWS} WHERE {_HERE}").fetchall()
    tables = cursor.execute(f"{_TABLES} WHERE {_HERE}").fetchall()
    relations = [(schema, name) for name, schema, *_ in (*views, *tables)]
    listing = _listing(relations)
    why, reads = dict[str, str](), dict[str, set[str]]()
    for name, expression in cursor.execute(f"{_GENERATED} AND {_HERE}").fetchall():
        reason, _ = _admitted(f"SELECT {expression}", listing)
        if reason:
            why[name.lower()] = f"in a generated column it {reason}"
    for name, _, sql in views:
        found = _VIEW.fullmatch(sql or "")
        reason, read = _admitted(found[1] if found else "", listing)
        reads.setdefault(name.lower(), set()).update(read)
        if reason:
            why[name.lower()] = f"it {reason}"
    return _with_readers(why, reads)


def computed_views(cursor: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """Views (in lower case) whose values may differ from one reading to another. Reads no row.

    Claim: any other relation that ``unsteady`` does not name has the same values in each reading.
    Assumes: the file does not change.
    Argument: the order in which threads meet rows decides the last digits of a sum or mean of
        doubles, and which of several equal values (both zeros) stands for a group. Without sums,
        groups and DISTINCT, a row of a view is made of one row of each relation that it reads.
    """
    found, reads = dict[str, str](), dict[str, set[str]]()
    for name, _, sql in cursor.execute(f"{_VIEWS} WHERE {_HERE}").fetchall():
        stated = _VIEW.fullmatch(sql or "")
        try:
            nodes = list(_nodes(query_tree(stated[1] if stated else "")))
        except Unreadable:
            found[name.lower()] = ""
            continue
        read = {str(n["table_name"]).lower() for n in nodes if n.get("type") == "BASE_TABLE"}
        reads.setdefault(name.lower(), set()).update(read)
        if any(map(_puts_together, nodes)):
            found[name.lower()] = ""
    return frozenset(_with_readers(found, reads))


def _puts_together(node: Node) -> bool:
    """Whether a part of a query computes one row from several rows."""
    every = node.get("setop_type") == "UNION" and node.get("setop_all")
    return (
        bool(node.get("group_expressions"))
        or node.get("aggregate_handling") == "FORCE_AGGREGATES"
        or str(node.get("function_name", "")).lower() in _AGGREGATES
        or node.get("type") == "DISTINCT_MODIFIER"
        or (node.get("type") == "SET_OPERATION_NODE" and not every)
    )


def _listing(relations: Iterable[tuple[str, str]]) -> Listing:
    """A listing of the file's relations, with and without schema, but not of the engine's own."""
    own = own_views()
    named = {(schema.lower(), name.lower()) for schema, name in relations}
    known = {(s, name) for schema, name in named if name not in own for s in (schema, "")}
    return replace(STEADY, relations=frozenset(known), hidden=own)


def _admitted(sql: str, listing: Listing) -> tuple[str, set[str]]:
    """Why a query's rows may depend on more than it reads (else empty), and the names it reads."""
    try:
        tree = query_tree(sql)
        for node in _nodes(tree):
            _simplify(node)
        walk(tree, listing)
    except Unreadable:
        return "cannot be read as one query", set()
    except NotListed as error:
        return _said(error), set()
    nodes = list(_nodes(tree))
    if any(node.get("type") in _BY_ORDER or node.get("distinct_on_targets") for node in nodes):
        return "takes rows by the order in which they come (LIMIT, DISTINCT ON)", set()
    return "", {str(n["table_name"]).lower() for n in nodes if n.get("type") == "BASE_TABLE"}


def _said(error: NotListed) -> str:
    match error.kind:
        case "function":
            return f"calls {quote(error.name)}, which is not known to depend on its arguments alone"
        case "relation":
            return f"reads {quote(error.name)}, which is no table or view of the file"
        case "column":
            return f"reads {quote(error.name)}, which may be the engine's own (write table.column for a column)"
        case "type":
            return f"converts to the type {quote(error.name)}, which is not known here"
        case _:
            return "has a form of syntax that is not known to depend on rows alone"


def _simplify(node: Node) -> None:
    """Replace a form that only owners may use, and that depends on rows alone, by a listed form."""
    while node.get("class") == "COLLATE" and str(node["collation"]).lower() in BYTE_BY_BYTE:
        child = node["child"]
        node.clear()
        node.update(child)
    left_out = node.get("exclude_list")
    if isinstance(left_out, list) and all(isinstance(name, str) for name in left_out):
        node["exclude_list"] = []
    if node.get("aggregate_handling") == "FORCE_AGGREGATES":  # GROUP BY ALL
        node["aggregate_handling"] = "STANDARD_HANDLING"
    if node.get("join_type") in ("SEMI", "ANTI"):
        node["join_type"] = "INNER"


def _nodes(tree: Any) -> Iterator[Node]:
    """Every object of a tree. It uses a loop, so a deep tree needs no call stack."""
    due = [tree]
    while due:
        node = due.pop()
        if isinstance(node, dict):
            yield node
            due.extend(node.values())
        elif isinstance(node, list):
            due.extend(node)


def _with_readers(why: dict[str, str], reads: Mapping[str, set[str]]) -> dict[str, str]:
    """The reasons, extended to every view that reads one of these relations, also indirectly."""
    due = list(why)
    while due:
        name = due.pop()
        for reader, read in reads.items():
            if name in read and reader not in why:
                why[reader] = f"it reads {quote(name)}, and there {why[name]}"
                due.append(reader)
    return why
