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

Statements are admitted before anything is reserved. Those that a question may always be answered by are
judged by their text alone; lighter ones, which trust what was seen of the data, are left out where
they do not pass.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from hashlib import blake2b
from itertools import count

import pyarrow as pa

from dpsql.diagnostics.refusal import Ended, EngineFailed, NotAdmitted, Refused
from dpsql.effort import count_known, is_planning, note_known, pause_counting, total
from dpsql.engines.duckdb.guard.admitted import Admitted
from dpsql.engines.duckdb.guard.facts import Unsafe
from dpsql.engines.duckdb.guard.listed import Listed, Place
from dpsql.engines.duckdb.guard.listed import listed as _listed
from dpsql.engines.duckdb.guard.parts import Node
from dpsql.engines.duckdb.guard.seen import Holds, Seen
from dpsql.engines.duckdb.guard.statement import measured, public
from dpsql.engines.duckdb.syntax_tree import TooDeep, Unreadable, query_tree
from dpsql.engines.engine import Engine, Value
from dpsql.engines.exact_rows import ExactRows
from dpsql.engines.facts import Facts
from dpsql.engines.incident import failed
from dpsql.memory.cache import memoize
from dpsql.memory.pool import Use
from dpsql.policy.companion import HEAVY, Shelf
from dpsql.policy.model import Policy
from dpsql.policy.source import SourceDescription

__all__ = ["Admitted", "Guard", "Guarded", "Unsafe"]
MOST_KNOWN = 2_000
"""Statements that are known to be safe, of which digests are kept; a service asks the same ones again."""


_QUOTED = r"""'(?:[^']|'')*'|"(?:[^"]|"")*\""""
_COMPARED = re.compile(
    rf"""(?:((?<![<>!])=[ ])\d{{1,15}}|((?:<>|[<>]=?|=)[ ])'(?:[^']|'')*')(?=\)|$|[ ](?:AND|OR|THEN)[ ])|{_QUOTED}"""
)
_OTHERWISE = re.compile(r"""--|/\*|\$\w*\$|[\w&]'""")
"""What makes quotes mean something else: comments, text between dollars, E'..' and its like."""


_PLACE = re.compile(r'"query_location":\d+,"query_location_length":\d+,')
_LAST_PLACE = re.compile(r',"query_location":\d+,"query_location_length":\d+(?=})')
"""Where a part stands in the text; in a text constant the quotes would be escaped."""


def _without_places(tree: str) -> str:
    return _LAST_PLACE.sub("", _PLACE.sub("", tree))


@memoize(Use.CACHED_CHECKS, MOST_KNOWN)
def _form(sql: str) -> str:
    """The statement without what it compares values with: for a rule these are all alike.

    Texts after a comparison, and whole numbers that something shall equal, decide no kind and no
    size. All else stays: what a text or number is elsewhere, a table may be, a key, or an end.
    """
    if _OTHERWISE.search(re.sub(_QUOTED, "''", sql)):
        return sql
    return _COMPARED.sub(_compared, sql)


def _compared(found: re.Match[str]) -> str:
    number, text = found[1], found[2]
    return f"{number}0" if number else f"{text}''" if text else found[0]


_NUMBERS = count()


class Guard:
    """Checks statements over the tables of one policy."""

    def __init__(
        self, policy: Policy, shelf: Shelf | None = None, holds: Holds | None = None
    ) -> None:
        """No statement is known yet; without ``holds`` nothing is known of the data."""
        self._seen = None if holds is None else Seen(policy, holds)
        self._tables: Mapping[Place, Listed] = _listed(policy, shelf or Shelf())
        self._steady = policy.limits.strict_timing
        self._lock, self._number = threading.Lock(), next(_NUMBERS)
        self._known: dict[tuple[bytes, str], int] = {}
        """What passed, and how many steps it took to walk it."""

    def list_kept(self, name: str, table: str) -> None:
        """Let statements read what is kept of a table under a name."""
        with self._lock:
            self._tables = {**self._tables, (HEAVY, name): self._tables["", table]}

    def check(self, sql: str, *, over_public: bool = False, by_text: bool = False) -> None:
        """Raise ``Unsafe`` for what must not run; a text is walked once.

        ``by_text``: whether it does depends on the statement and the policy alone.
        """
        form = blake2b(_form(sql).encode("utf-8", "surrogatepass"), digest_size=32).digest()
        ways = ("public",) if over_public else ("text",) if by_text else ("text", "data")
        for way in ways:
            steps = self._known.get((form, way))
            if steps is not None:
                count_known((self._number, form), steps + 2 * len(sql))
                return
        tree, way, before = parsed(sql), ways[0], total()
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
            measured(tree, self._tables, steady=self._steady)
        except Unsafe:
            if self._seen is None or by_text:
                raise
            tables, few = self._seen.of(tree, self._tables)
            measured(tree, tables, steady=self._steady, few=few)
            return "data"
        return "text"


def parsed(sql: str) -> Node:
    """The tree of a statement, without where its parts stand in the text."""
    try:
        return query_tree(sql, _without_places)
    except TooDeep:
        raise
    except Unreadable:
        raise Unsafe("not one query") from None


class Guarded:
    """An engine that runs only what passes; the rest is an incident, as if it had failed."""

    def __init__(
        self, engine: Engine, policy: Policy, shelf: Shelf | None = None, facts: Facts | None = None
    ) -> None:
        """Wrap an open engine; ``shelf`` are the prepared copies that may be read.

        ``facts`` are what was looked up of the data when the policy was opened.
        """
        facts = facts or Facts()
        self._engine, self._guard = engine, Guard(policy, shelf, facts.hold)
        for name, table in facts.kept.items():
            self._guard.list_kept(name, table)

    @property
    def prepared(self) -> str | None:
        """What the prepared copies are."""
        return self._engine.prepared

    def describe(self) -> SourceDescription:
        """Tables, columns, types and constraints."""
        return self._engine.describe()

    def admit(self, sql: str, lighter: str | None = None) -> Admitted:
        """A measurement's own statement; or a ``lighter`` one with the same integers, if it passes too.

        Claim: whether this raises depends on ``sql`` and the policy alone, never on data.
        Argument: the own statement is judged by its text. A lighter one that does not pass is an
            incident for the operator, and leaves the own one to run.
        """
        self._check(sql, NotAdmitted, by_text=True)
        if lighter is None:
            return Admitted(sql)
        try:
            with (
                pause_counting()
            ):  # as much work as the own one, but which there is the data decides
                self._check(lighter, NotAdmitted)
        except NotAdmitted:
            return Admitted(sql)
        return Admitted(lighter)

    def admit_public(self, sql: str) -> None:
        """Raise unless this is a statement that reads public tables only."""
        self._check(sql, NotAdmitted, over_public=True)

    def measure(self, statement: Admitted, parameters: Mapping[str, Value]) -> ExactRows:
        """Run the statement of a measurement. It was admitted; here that is seen once more."""
        self._check(statement.sql, EngineFailed)
        return self._engine.measure(statement.sql, parameters)

    def read_public(self, sql: str) -> pa.Table:
        """Run a statement that reads public tables only."""
        self._check(sql, EngineFailed, over_public=True)
        return self._engine.read_public(sql)

    def probe(self) -> None:
        """Raise unless the engine answers, whatever data it holds."""
        self.read_public("SELECT 1 AS one")

    def close(self) -> None:
        """Let go of the data."""
        self._engine.close()

    def _check(
        self, sql: str, error_type: type[EngineFailed], *, over_public: bool = False,
        by_text: bool = False,
    ) -> None:  # fmt: skip
        failure: EngineFailed
        try:
            self._guard.check(sql, over_public=over_public, by_text=by_text)
        except (Refused, Ended):
            raise
        except Exception as error:
            if isinstance(error, RecursionError) and is_planning():
                raise
            said = f" ({error})" if isinstance(error, Unsafe) else ""
            failure = failed(f"pass a second check{said}", error, sql, error_type)
        else:
            return
        raise failure
