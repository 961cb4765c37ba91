"""A second opinion on every statement before it is paid, from the engine's own reading of it.

The planner says what a statement is; nothing here believes it. The statement's text is parsed by
the engine's parser and walked by rules that know neither plans nor sensitivities, only which tables
hold whose rows. What is not certainly of the expected form does not run.

Claim: a statement that passes reads listed columns of listed tables only; it joins rows of units by
    the whole key of a unit, or of the row they belong to; it mixes rows of different units nowhere
    but in counts and in sums of whole numbers that its own text bounds, or what was seen of the
    data, and that do not grow with a unit's rows; nothing is decided by such a number before it has
    its noise, and nobody's identifier names a group; it uses no function, cast or comparison that can
    fail or that sees more than its arguments.
Assumes: the engine parses the text as it will run it; functions named in ``terms`` are total; stored
    columns have the types that the policy declares; there are no more rows than ``sizes`` says; what
    ``seen`` looked up stays so.
Argument: every node of the tree is matched by a rule of this package, which gives what is certain of its rows
    and values; a node without one, or of which too little is certain, raises ``Unsafe``.

Statements are admitted before anything is reserved (``engines.duckdb.guarded``). Those that a question may
always be answered by are judged by their text alone; their alternatives trust what was seen of the data.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from hashlib import blake2b
from itertools import count

from dpsql.effort import count_known, note_known, total
from dpsql.engines.duckdb.guard.facts import Unsafe
from dpsql.engines.duckdb.guard.listed import Listed, Place
from dpsql.engines.duckdb.guard.listed import list_tables as _listed
from dpsql.engines.duckdb.guard.parts import Node
from dpsql.engines.duckdb.guard.seen import Holds, Seen
from dpsql.engines.duckdb.guard.statement import check_measurement, public
from dpsql.engines.duckdb.syntax_tree import TooDeep, Unreadable, query_tree
from dpsql.policy.model import Policy
from dpsql.policy.prepared_copies import OVER_LIMIT_CATALOG, PreparedCopies

__all__ = ["Guard", "Unsafe"]
MOST_KNOWN = 2_000
"""Statements that are known to be safe, of which digests are kept; a service asks the same ones again."""


_PLACE = re.compile(r'"query_location":\d+,"query_location_length":\d+,')
_LAST_PLACE = re.compile(r',"query_location":\d+,"query_location_length":\d+(?=})')
"""Where a part stands in the text; in a text constant the quotes would be escaped."""


def _without_places(tree: str) -> str:
    return _LAST_PLACE.sub("", _PLACE.sub("", tree))


_NUMBERS = count()


class Guard:
    """Checks statements over the tables of one policy."""

    def __init__(
        self, policy: Policy, shelf: PreparedCopies | None = None, holds: Holds | None = None
    ) -> None:
        """No statement is known yet; without ``holds`` nothing is known of the data."""
        self._seen = None if holds is None else Seen(policy, holds)
        self._tables: Mapping[Place, Listed] = _listed(policy, shelf or PreparedCopies())
        self._steady = policy.limits.strict_timing
        self._lock, self._number = threading.Lock(), next(_NUMBERS)
        self._known: dict[tuple[bytes, str], int] = {}
        """What passed, and how many steps it took to walk it."""

    def list_kept(self, name: str, table: str) -> None:
        """Let statements read what is kept of a table under a name."""
        with self._lock:
            self._tables = {**self._tables, (OVER_LIMIT_CATALOG, name): self._tables["", table]}

    def check(
        self, sql: str, *, form: bytes | None = None, over_public: bool = False,
        by_text: bool = False,
    ) -> None:  # fmt: skip
        """Raise ``Unsafe`` for what must not run; statements of one ``form`` are walked once.

        Whoever gives a form answers for it that all statements of the form pass, or none; without it
        a text is its own. ``by_text``: whether it passes depends on the statement and the policy alone.
        """
        if form is None:
            form = blake2b(sql.encode("utf-8", "surrogatepass"), digest_size=32).digest()
        ways = ("public",) if over_public else ("text",) if by_text else ("text", "data")
        for way in ways:
            steps = self._known.get((form, way))
            if steps is not None:
                count_known((self._number, form), steps + 2 * len(sql))
                return
        tree, way, before = parse_statement(sql), ways[0], total()
        if over_public:
            public(tree, self._tables)
        else:
            way = self._measured(tree, by_text=by_text)
        with self._lock:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[form, way] = total() - before
        note_known((self._number, form))

    def _measured(self, tree: Node, *, by_text: bool) -> str:
        """By its text alone; or, where that does not do, with what is seen of the data."""
        try:
            check_measurement(tree, self._tables, steady=self._steady)
        except Unsafe:
            if self._seen is None or by_text:
                raise
            tables, few = self._seen.of(tree, self._tables)
            check_measurement(tree, tables, steady=self._steady, few=few)
            return "data"
        return "text"


def parse_statement(sql: str) -> Node:
    """The tree of a statement, without where its parts stand in the text."""
    try:
        return query_tree(sql, _without_places)
    except TooDeep:
        raise
    except Unreadable:
        raise Unsafe("not one query") from None
