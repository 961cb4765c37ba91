"""The closed world: the list of syntax-tree nodes, and of their arguments, that dpsql reads.

Whatever is not listed is refused, including anything that a future parser adds. There is no list
of forbidden constructs. A listed node must be handled by ``bind``, with each listed argument.
"""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.diagnostics.refusal import Refusal
from dpsql.sql.nodes import RECORDED, aggregate_call
from dpsql.sql.own import own
from dpsql.sql.spans import has_place, span_of, written_name

_BINARY = ("this", "expression")

ALLOWED: dict[type[exp.Expr], tuple[str, ...]] = {
    # queries
    exp.Select: (
        "expressions", "from_", "joins", "where", "group", "having", "qualify", "order", "limit",
        "offset", "distinct", "with_", "kind", "hint", "operation_modifiers",
    ),
    exp.Subquery: ("this", "alias"),
    exp.Union: ("this", "expression", "distinct", "order", "limit", "offset", "with_"),
    exp.Except: ("this", "expression", "distinct", "order", "limit", "offset", "with_"),
    exp.Intersect: ("this", "expression", "distinct", "order", "limit", "offset", "with_"),
    exp.With: ("expressions",),
    exp.CTE: ("this", "alias"),
    exp.Values: ("expressions", "alias"),
    exp.ExplodingGenerateSeries: ("start", "end", "step"),
    exp.From: ("this",),
    exp.Join: ("this", "on", "using", "side", "kind", "method"),  # NATURAL is refused in bind, where columns are known
    exp.Table: ("this", "db", "alias"),
    exp.TableAlias: ("this", "columns"),
    exp.Where: ("this",),
    exp.Group: ("expressions",),
    exp.Rollup: ("expressions",),
    exp.Cube: ("expressions",),
    exp.GroupingSets: ("expressions",),
    exp.Grouping: ("expressions",),
    exp.Having: ("this",),
    exp.Qualify: ("this",),
    exp.Order: ("expressions",),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Limit: ("expression",),
    exp.Offset: ("expression",),
    exp.Distinct: ("expressions",),
    exp.Filter: _BINARY,
    exp.Window: ("this", "partition_by", "order", "spec", "over"),
    exp.WindowSpec: ("kind", "start", "start_side", "end", "end_side"),
    # names and constants
    exp.Alias: ("this", "alias"),
    exp.Column: ("this", "table", "db"),
    exp.Identifier: ("this", "quoted"),
    exp.Star: (),
    exp.Var: ("this",),
    exp.Literal: ("this", "is_string"),
    exp.Boolean: ("this",),
    exp.Null: (),
    exp.Placeholder: ("this",),
    exp.Parameter: ("this",),
    exp.DataType: ("this", "expressions", "nested"),
    exp.DataTypeParam: ("this",),
    exp.Interval: ("this", "unit"),
    exp.Tuple: ("expressions",),
    exp.Paren: ("this",),
    # operators
    exp.Exists: ("this",),
    exp.Between: ("this", "low", "high"),
    exp.Escape: _BINARY,
    # functions
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
    exp.StrToDate: ("this", "format"),
    exp.StrToTime: ("this", "format"),
    exp.DateBin: ("this", "expression", "unit"),
    exp.CurrentDate: (),
    exp.CurrentTimestamp: (),
    # aggregates and scalar functions, and what belongs to some of them
    **{kind: node.arguments for kind, node in RECORDED.items()},
    exp.WithinGroup: _BINARY,
    exp.Array: ("expressions",),
    exp.Bracket: ("this", "expressions", "offset", "safe"),
    # window functions
    exp.RowNumber: (),
    exp.Rank: (),
    exp.DenseRank: (),
    exp.PercentRank: (),
    exp.CumeDist: (),
    exp.Ntile: ("this",),
    exp.Lag: ("this", "offset", "default"),
    exp.Lead: ("this", "offset", "default"),
    exp.FirstValue: ("this",),
    exp.LastValue: ("this",),
}  # fmt: skip
"""Node classes (exactly these, no subclasses) and the arguments that each may have."""

_SILENT: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Select: ("kind", "hint", "operation_modifiers")
}
"""Arguments that the parser sets to an empty value; any other value of them is refused."""


_TELLING: dict[type[exp.Expr], tuple[str, ...]] = {exp.Group: ("all",)}
"""Arguments for which False is meaningful: ``all=False`` is GROUP BY DISTINCT."""

_SAID = {
    "GROUP with all": "GROUP BY with DISTINCT, or with ALL and keys,",
    "TABLE with sample": "TABLESAMPLE",
    "DISTINCT with on": "DISTINCT ON",
    "WITH with recursive": "WITH RECURSIVE",
    "SELECT with into": "SELECT INTO",
    "REGEXP_LIKE": "~",
    "REGEXP_I_LIKE": "~*",
    "STAR with except": "* EXCEPT or EXCLUDE",
    "STAR with replace": "* REPLACE",
    "CTE with materialized": "MATERIALIZED",
    "SELECT with locks": "FOR UPDATE or FOR SHARE",
    "SELECT with windows": "the WINDOW clause",
    "BYTE STRING": "a text with escapes (E'...', b'...')",
    "JSON_EXTRACT": "->",
    "JSON_EXTRACT_SCALAR": "->>",
}
"""The words of the statement for what the parser calls by another name."""


def refusals(tree: exp.Expr) -> list[Refusal]:
    """One refusal for each part of the tree outside the closed world."""
    found: list[Refusal] = []
    stack: list[exp.Expr] = [tree]
    while stack:
        node = stack.pop()
        problem = _problem(node)
        if problem is None:
            stack.extend(node.iter_expressions())
        else:
            found.append(_refusal(node, *problem))
    return found


def _problem(node: exp.Expr) -> tuple[str, exp.Expr] | None:
    """The name and the place of something that is not listed in this node, or None."""
    allowed = ALLOWED.get(type(node))
    if own(node) or (isinstance(node, exp.Anonymous) and aggregate_call(node) is not None):
        return None
    if allowed is None:
        return _name(node), node
    silent, telling = _SILENT.get(type(node), ()), _TELLING.get(type(node), ())
    for argument, value in node.args.items():
        said = value is not None and (value is not False or argument in telling) and value != []
        if said and (argument not in allowed or argument in silent):
            first = value[0] if isinstance(value, list) else value
            place = first if isinstance(first, exp.Expr) and has_place(first) else node
            return f"{_name(node)} with {argument.rstrip('_').replace('_', ' ')}", place
    return None


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return f'"{node.args.get("this")}"'
    if isinstance(node, exp.Func):
        return str(node.sql_name()).upper()
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()


_HINTS = {
    "FETCH": "LIMIT 5 keeps the first five rows.",
    "LIMIT with limit options": "LIMIT 5 keeps the first five rows.",
    "WITH with recursive": "A WITH query reads tables and the WITH queries before it.",
    "SELECT with into": "Read the answer; dpsql stores nothing in the database.",
    "SELECT with windows": "Write the window out: OVER (PARTITION BY ... ORDER BY ...).",
    "GROUP with all": "Name the keys, by column or by position: GROUP BY 1, 2.",
    "DISTINCT with on": "Group by the columns, and aggregate the others.",
    "REGEXP_LIKE": "LIKE takes a literal pattern: % for any text, _ for one character.",
    "SIMILAR TO": "LIKE takes a literal pattern: % for any text, _ for one character.",
    "ANY": "IN takes a list: a IN (1, 2).",
    "BYTE STRING": "Write text as 'text', and double a quote inside it.",
    "UNICODE STRING": "Write the character itself.",
    "LATERAL": "Write it as a join, or aggregate in a subquery of its own.",
    "HISTOGRAM": "Group by the value and count: x, COUNT(*) ... GROUP BY x, or GROUP BY "
    "WIDTH_BUCKET(x, 0, 100, 10).",
    "APPROX_TOP_COUNT": "Count each value: x, COUNT(*) ... GROUP BY x ORDER BY 2 DESC LIMIT 10.",
    "APPROX_TOP_K": "Count each value: x, COUNT(*) ... GROUP BY x ORDER BY 2 DESC LIMIT 10.",
    "ANY_VALUE": "Add the column to GROUP BY: any one value would be that of one row. MODE(x) "
    "is the most common value.",
    "FIRST": "The first row belongs to one unit. Use MIN(x), MAX(x) or MEDIAN(x), which are "
    "computed from all rows.",
    "LAST": "The last row belongs to one unit. Use MIN(x), MAX(x) or MEDIAN(x), which are "
    "computed from all rows.",
    "ARRAY_AGG": "A list would show the values of single rows. Group by the value and count "
    "instead.",
    "GROUP_CONCAT": "A list would show the values of single rows. Group by the value and count "
    "instead.",
    "RAND": "Leave it out. With random numbers on rows, the answer could not be repeated.",
}
"""What to write instead of some constructs that are not listed."""


LEAVE_OUT = "Leave it out."


def _refusal(node: exp.Expr, name: str, place: exp.Expr) -> Refusal:
    function = isinstance(node, exp.Func) and type(node) not in ALLOWED
    said = written_name(node) if function and not isinstance(node, exp.Anonymous) else ""
    return Refusal(
        code="DP107" if function else "DP100",
        headline=f"{said or _SAID.get(name, name)} is not in the SQL that dpsql answers",
        why="Only constructs whose effect on one person's privacy is known are run; "
        "everything else is refused, whatever the data.",
        instead=_HINTS.get(
            name.strip('"').upper() if function else name,
            LEAVE_OUT,
        ),
        span=span_of(place),
    )
