"""What an engine that a client's words can reach may be asked: a closed world on its own syntax tree.

The engine's parser reads the statement, and every node, field and name of the tree must be listed.
``listing`` says which relations, functions and types an engine has for clients; ``nodes`` which
forms of syntax all of them have; ``walk`` goes through the tree; ``lockdown`` closes the engine.

Claim: a statement that is admitted is one query. It reads relations that the listing names, or that
    the query itself defines, and calls functions that the listing names; no text is a relation.
Assumes: the engine runs the text as its parser reads it; what a listed function does follows from
    its arguments and from listed relations alone.
Argument: ``walk`` visits every field of every node, and each must be one that ``nodes`` expects, with names
    that ``listing`` has; anything else raises.
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
"""Statements that are known to be admitted; only digests of them are kept."""


class StatementCheck:
    """The check of one engine. Safe to use from several threads."""

    def __init__(self, listing: Listing) -> None:
        """Nothing is known yet."""
        own = own_views() - {name for _, name in listing.relations}
        self._listing = replace(listing, hidden=listing.hidden | own)
        self._known: dict[bytes, int] = {}
        """What was admitted, and how many steps it took to look at it."""
        self._lock = threading.Lock()

    def check(self, sql: str, relations: Iterable[str] = ()) -> None:
        """Raise ``NotListed`` for what must not run; ``relations`` exist for this statement only."""
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
