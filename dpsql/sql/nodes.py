"""The syntax nodes that records name: the parser's classes, and what calls them.

Records name classes so that the parser stays inside ``dpsql.sql``. A name that the parser does not
have stops the import, and so does a node that two records claim.
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


def function_calls(
    records: Iterable[FunctionRecord],
) -> dict[NodeClass, tuple[FunctionRecord, FunctionNode]]:
    """The function that each class of node calls."""
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
"""What records say of each class of node: the arguments that it may carry, and its dialects."""
PLAIN_FUNCTIONS: dict[NodeClass, tuple[str, tuple[str, ...]]] = {
    kind: (record.function.name, node.values)
    for kind, (record, node) in FUNCTION_CALLS.items()
    if node.values is not None
}
"""Nodes that are one function over the arguments named here."""


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
    said = RECORDED.get(type(node)) if call is None else call[1]
    return said is not None and dialect in said.dialects
