"""LIMIT and OFFSET: whole literals, so that the number of rows does not depend on data."""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from dpsql.ir.relations import Limit, Relation, Values
from dpsql.sql.bind.context import refuse
from dpsql.sql.spans import span_of


def apply_limit(relation: Relation, node: exp.Expr) -> Relation:
    """The relation of a query with its LIMIT and OFFSET."""
    count, offset = _whole(node.args.get("limit")), _whole(node.args.get("offset"))
    if count is None and offset is None:
        return relation
    if count == 0:
        # No row is read: clients use LIMIT 0 to ask for names and types.
        relation = Values(relation.fields, ((None,) * len(relation.fields),))
    places = [span_of(c) for c in (node.args.get("limit"), node.args.get("offset")) if c]
    place = reduce(lambda a, b: a and b and a.cover(b), places)
    return Limit(relation, count, offset or 0, relation.fields, relation.privacy, place)


def _whole(clause: exp.Expr | None) -> int | None:
    if clause is None:
        return None
    value = clause.expression
    if isinstance(value, exp.Null):
        return None
    if isinstance(value, exp.Var) and str(value.this).upper() == "ALL":
        return None
    if isinstance(value, exp.Literal) and not value.is_string and str(value.this).isdigit():
        return min(int(str(value.this)), 2**62)
    raise refuse(
        "DP114",
        clause,
        "LIMIT and OFFSET take literal whole numbers",
        "The row count must not depend on data.",
        "LIMIT 10 keeps ten rows; without LIMIT all are kept.",
    )
