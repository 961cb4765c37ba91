"""The allowlist of engines that a client's text can reach: a closed world on the engine's own tree.

The engine's parser reads the statement, and every node, field and name of the tree must be listed.
``listing`` has the relations, functions and types that an engine offers to clients. ``nodes`` has
the forms of syntax that all engines offer. ``walk`` visits the tree, and ``lockdown`` locks the
engine.

Claim: a statement that is admitted is one query. It reads only relations that the listing names or
    that the query itself defines, and calls only functions that the listing names. No text constant
    is a relation.
Assumes: the engine runs the text as its parser reads it. The effect of a listed function follows
    from its arguments and from listed relations alone.
Argument: ``walk`` visits every field of every node. Each must be one that ``nodes`` expects, with
    names that ``listing`` has; anything else raises.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b

from dpsql.effort import count_known, is_planning, note_known, total
from dpsql.engines.duckdb.allowlist.listing import OPERATORS, PLAIN_TYPES, Listing, NotListed
from dpsql.engines.duckdb.allowlist.walk import walk
from dpsql.engines.duckdb.syntax_tree import TooDeep, Unreadable, own_views, query_tree

__all__ = ["OPERATORS", "PLAIN_TYPES", "Listing", "NotListed", "StatementCheck"]
MOST_KNOWN = 4_000
"""The most admitted statements that are remembered. Only their digests are kept."""


class StatementCheck:
    """The check of one engine. Safe to use from several threads."""

    def __init__(self, listing: Listing) -> None:
        """A check that remembers no statement yet."""
        own = own_views() - {name for _, name in listing.relations}
        self._listing = replace(listing, hidden=listing.hidden | own)
        self._known: dict[bytes, int] = {}
        """The digests of admitted statements, each with the number of steps of its check."""
        self._lock = threading.Lock()

    def check(self, sql: str, relations: Iterable[str] = ()) -> None:
        """Raise ``NotListed`` if a statement must not run; ``relations`` exist for it alone."""
        names = sorted(relations)
        known = blake2b(
            "\0".join([*names, sql]).encode("utf-8", "surrogatepass"), digest_size=32
        ).digest()
        steps = self._known.get(known)
        if steps is not None:
            count_known(known, steps)
            return
        before = total()
        try:
            tree = query_tree(sql)
        except Unreadable as error:
            if isinstance(error, TooDeep) and is_planning():
                raise
            raise NotListed("syntax", str(error)) from None
        walk(tree, self._listing.with_relations(names))
        with self._lock:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[known] = total() - before
        note_known(known)
