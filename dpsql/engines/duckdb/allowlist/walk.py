"""The walk over a tree, of which each field of each node must be listed. It needs no call stack."""

from __future__ import annotations

from dpsql.engines.duckdb.allowlist.listing import Listing
from dpsql.engines.duckdb.allowlist.nodes import QUERY
from dpsql.engines.duckdb.allowlist.rules import Task, form
from dpsql.engines.duckdb.syntax_tree import Node


def walk(query: Node, listing: Listing) -> None:
    """Raise ``NotListed`` at the first part that is not listed."""
    due = [Task(QUERY, query, frozenset())]
    try:
        while due:
            rule, value, scope = due.pop()
            due.extend(rule(value, scope, listing))
    except (KeyError, TypeError, AttributeError):
        raise form("a tree of a shape that is not known") from None
