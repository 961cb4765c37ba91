"""The second check of every statement before it is charged, on the tree of the engine's own parser.

The check trusts nothing that the planner says about a statement. The engine's parser reads the
statement's text, and rules walk the tree that know neither plans nor sensitivities, but only which
tables hold rows of which units. A statement that is not certainly of the expected form does not
run.

Claim: a statement that passes reads listed columns of listed tables only. It joins rows of units
    only by the whole key of a unit, or of the row that they belong to. It mixes rows of different
    units only in counts, and in sums of whole numbers that do not grow with a unit's rows and are
    bounded by its own text or by facts that were looked up in the data. Nothing is decided by such
    a number before it has its noise, and no column that identifies people names a group. It uses no
    function, cast or comparison that can fail or that reads more than its arguments.
Assumes: the engine parses the text as it will run it; functions named in ``terms`` are total;
    stored columns have the types that the policy declares; there are no more rows than ``sizes``
    says; the facts that ``seen`` looked up stay true.
Argument: every node of the tree is matched by a rule of this package, which returns the certain
    facts of its rows and values. A node without a rule, or with too few facts, raises ``Unsafe``.

Statements are admitted before anything is reserved (``engines.duckdb.guarded``). A measurement's
own statement is checked by its text alone. Its alternatives also rely on facts of the data.
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
"""The most safe statements that are remembered, by their digests. A service asks them again."""


_PLACE = re.compile(r'"query_location":\d+,"query_location_length":\d+,')
_LAST_PLACE = re.compile(r',"query_location":\d+,"query_location_length":\d+(?=})')
"""The position of a part in the text. Within a text constant the quotes would be escaped."""


def _without_places(tree: str) -> str:
    return _LAST_PLACE.sub("", _PLACE.sub("", tree))


_NUMBERS = count()


class Guard:
    """Checks statements over the tables of one policy."""

    def __init__(
        self, policy: Policy, shelf: PreparedCopies | None = None, holds: Holds | None = None
    ) -> None:
        """Remember no statement yet. Without ``holds`` nothing is known of the data."""
        self._seen = None if holds is None else Seen(policy, holds)
        self._tables: Mapping[Place, Listed] = _listed(policy, shelf or PreparedCopies())
        self._steady = policy.limits.strict_timing
        self._lock, self._number = threading.Lock(), next(_NUMBERS)
        self._known: dict[tuple[bytes, str], int] = {}
        """The forms that passed, by the way of their check, with the steps that it took."""

    def list_kept(self, name: str, table: str) -> None:
        """Let statements read the rows of a table that are kept under a name."""
        with self._lock:
            self._tables = {**self._tables, (OVER_LIMIT_CATALOG, name): self._tables["", table]}

    def check(
        self, sql: str, *, form: bytes | None = None, over_public: bool = False,
        by_text: bool = False,
    ) -> None:  # fmt: skip
        """Raise ``Unsafe`` if a statement must not run. Statements of one ``form`` are walked once.

        A caller that gives a form guarantees that all statements of the form pass, or none. Without
        a form, the text is the form. ``by_text``: the outcome depends on statement and policy
        alone.
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
        """Check a measurement by its text alone or, if that fails, with facts of the data.

        Returns the way in which it passed.
        """
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
    """The tree of a statement, without the positions of its parts in the text."""
    try:
        return query_tree(sql, _without_places)
    except TooDeep:
        raise
    except Unreadable:
        raise Unsafe("not one query") from None
