"""The syntax nodes that records name: the parser's classes, and what calls them.

Records name classes so that the parser stays inside ``dpsql.sql``. A name that the parser does not
have stops the import, and so does a node that two records claim.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.record import AggregateNode, AggregateRecord

NodeClass = type[exp.Expr]
AggregateCall = tuple[AggregateRecord, AggregateNode]
"""The aggregate that a node calls, and how."""


def node_class(name: str) -> NodeClass:
    """The parser's class of this name."""
    found = getattr(exp, name, None)
    if not (isinstance(found, type) and issubclass(found, exp.Expr)):
        raise LookupError(f"the parser has no syntax node {name}")
    return found


def aggregate_calls(records: Iterable[AggregateRecord]) -> dict[NodeClass | str, AggregateCall]:
    """What each class calls; for calls that the parser has no class for, what each name calls."""
    found: dict[NodeClass | str, AggregateCall] = {}
    for record in records:
        for node in record.nodes:
            kind = node_class(node.name)
            keys = node.spellings if kind is exp.Anonymous else (kind,)
            for key in keys:
                if key in found:
                    raise TypeError(f"two records claim {key}")
                found[key] = record, node
    return found


AGGREGATE_CALLS = aggregate_calls(AGGREGATES.values())
AGGREGATE_ARGUMENTS: dict[NodeClass, tuple[str, ...]] = {
    kind: node.arguments for kind, (_, node) in AGGREGATE_CALLS.items() if not isinstance(kind, str)
}
"""The arguments that a node of each class may carry."""

RECORDED_DIALECTS: dict[NodeClass, tuple[str, ...]] = {
    kind: node.dialects for kind, (_, node) in AGGREGATE_CALLS.items() if not isinstance(kind, str)
}
"""The dialects in which a node of each class means what it means in PostgreSQL."""


def aggregate_call(node: exp.Expr) -> AggregateCall | None:
    """The aggregate that a node calls, and how; None for any other node."""
    if isinstance(node, exp.Anonymous):
        return AGGREGATE_CALLS.get(str(node.this).upper())
    return AGGREGATE_CALLS.get(type(node))


def is_aggregate_call(node: exp.Expr) -> bool:
    """Whether the node calls an aggregate, also one that says its order apart."""
    return aggregate_call(node) is not None or isinstance(node, exp.WithinGroup)


def call_arguments(node: exp.Expr) -> list[exp.Expr]:
    """What an aggregate call is of, as it is written: values, a star, or DISTINCT values."""
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [part for part in (node.this, node.args.get("expression")) if part is not None]


def same_meaning(node: exp.Expr, dialect: str) -> bool:
    """Whether a record says that the node means in a dialect what it means in PostgreSQL."""
    call = aggregate_call(node)
    return call is not None and dialect in call[1].dialects
