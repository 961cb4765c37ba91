"""Maps from the parser's classes of syntax nodes to the records of aggregates and functions.

Records contain only the names of classes, so that the parser is used only in ``dpsql.sql``. A name
that the parser does not have stops the import, and so does a node that two records claim.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.function import FunctionNode, FunctionRecord
from dpsql.catalog.functions import RECORDS
from dpsql.catalog.record import AggregateNode, AggregateRecord

NodeClass = type[exp.Expr]
AggregateCall = tuple[AggregateRecord, AggregateNode]
"""The record of the aggregate that a node calls, and the entry for that node."""


def node_class(name: str) -> NodeClass:
    """The parser's class of this name."""
    found = getattr(exp, name, None)
    if not (isinstance(found, type) and issubclass(found, exp.Expr)):
        raise LookupError(f"the parser has no syntax node {name}")
    return found


def aggregate_calls(records: Iterable[AggregateRecord]) -> dict[NodeClass | str, AggregateCall]:
    """The aggregate of each class of nodes, and of each name for which the parser has no class."""
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


def function_calls(
    records: Iterable[FunctionRecord],
) -> dict[NodeClass, tuple[FunctionRecord, FunctionNode]]:
    """The function of each class of nodes."""
    found: dict[NodeClass, tuple[FunctionRecord, FunctionNode]] = {}
    for record in records:
        for node in record.nodes:
            kind = node_class(node.name)
            if kind in found:
                raise TypeError(f"two records claim {kind}")
            found[kind] = record, node
    return found


AGGREGATE_CALLS = aggregate_calls(AGGREGATES.values())
FUNCTION_CALLS = function_calls(RECORDS.values())
RECORDED: dict[NodeClass, AggregateNode | FunctionNode] = {
    **{k: node for k, (_, node) in AGGREGATE_CALLS.items() if not isinstance(k, str)},
    **{kind: node for kind, (_, node) in FUNCTION_CALLS.items()},
}
"""The entry of each class of nodes: the arguments that it may have, and its dialects."""
PLAIN_FUNCTIONS: dict[NodeClass, tuple[str, tuple[str, ...]]] = {
    kind: (record.function.name, node.values)
    for kind, (record, node) in FUNCTION_CALLS.items()
    if node.values is not None
}
"""Classes of nodes that are a plain call: the function, and the names of its arguments."""


def aggregate_call(node: exp.Expr) -> AggregateCall | None:
    """The aggregate that a node calls, and the entry for the node; None for any other node."""
    if isinstance(node, exp.Anonymous):
        return AGGREGATE_CALLS.get(str(node.this).upper())
    return AGGREGATE_CALLS.get(type(node))


def is_aggregate_call(node: exp.Expr) -> bool:
    """Whether the node calls an aggregate, including one with WITHIN GROUP."""
    return aggregate_call(node) is not None or isinstance(node, exp.WithinGroup)


def call_arguments(node: exp.Expr) -> list[exp.Expr]:
    """The written arguments of an aggregate call: values, a star, or DISTINCT values."""
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [part for part in (node.this, node.args.get("expression")) if part is not None]


def same_meaning(node: exp.Expr, dialect: str) -> bool:
    """Whether a record says that the node has the same meaning in a dialect as in PostgreSQL."""
    call = aggregate_call(node)
    said = RECORDED.get(type(node)) if call is None else call[1]
    return said is not None and dialect in said.dialects
