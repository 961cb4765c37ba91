"""The parser's classes of the syntax nodes that records name.

Records name classes so that the parser stays inside ``dpsql.sql``. A name that the parser does not
have stops the import, and so does a class that two records claim.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.record import AggregateNode, AggregateRecord

Kind = type[exp.Expr]


def node_class(name: str) -> Kind:
    """The parser's class of this name."""
    found = getattr(exp, name, None)
    if not (isinstance(found, type) and issubclass(found, exp.Expr)):
        raise LookupError(f"the parser has no syntax node {name}")
    return found


def aggregate_calls(
    records: Iterable[AggregateRecord],
) -> dict[Kind, tuple[AggregateRecord, AggregateNode]]:
    """What each class of node calls, and how."""
    found: dict[Kind, tuple[AggregateRecord, AggregateNode]] = {}
    for record in records:
        for node in record.nodes:
            kind = node_class(node.name)
            if kind in found:
                raise TypeError(f"two records claim the syntax node {node.name}")
            found[kind] = record, node
    return found


AGGREGATE_CALLS = aggregate_calls(AGGREGATES.values())


def is_aggregate_call(node: exp.Expr) -> bool:
    """Whether the node calls an aggregate, also one that says its order apart."""
    return type(node) in AGGREGATE_CALLS or isinstance(node, exp.WithinGroup)
