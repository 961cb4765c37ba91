"""The data compared with what the policy declares of it: when a policy is opened, never because of a query.

Claim: if ``verify`` returns, every declaration that ``declarations.requirements`` lists as verified holds for
    the rows that the engine has open. Whether it does is all that anybody learns: no number, no name of
    a declaration is in what is raised.
Assumes: the database does not change while it is open. It is opened read-only, and ``engines.duckdb.engine``
    refuses to open a file beside one that it was before.
Argument: each requirement of the declarations is a query that the engine answers here, or that was
    answered for the same state of the same file (``engines.facts_file``). One row refuses the policy,
    and so does a query that could not be answered.

Of public tables it is looked up how many rows share a value (``plan.fan_outs``), and which rows they are
(``plan.contents``). What private ones keep beyond
their declarations only chooses cheaper statements (``declarations.queries``, ``guard.seen``). It is
looked up here too, and what could not be looked up is not relied on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import TypeVar

from dpsql.declarations.queries import (
    has_too_many_to_keep,
    lookups,
    over_limit_rows,
    units_over_limit,
)
from dpsql.declarations.requirements import requirements
from dpsql.diagnostics.refusal import DataBreaksPolicy, EngineFailed
from dpsql.engines.duckdb.guard.listed import list_tables
from dpsql.engines.duckdb.guard.seen import lookups as seen_lookups
from dpsql.engines.duckdb.write import write
from dpsql.engines.facts import Facts
from dpsql.engines.facts_file import FactsFile
from dpsql.engines.lookups import LookUps
from dpsql.ir.statements import Query
from dpsql.plan.contents import content_lookups, with_contents
from dpsql.plan.fan_outs import fan_out_lookups, with_fan_outs
from dpsql.policy.model import Policy
from dpsql.policy.prepared_copies import OVER_LIMIT_CATALOG, PreparedCopies, over_limit_name
from dpsql.policy.source import SourceDescription

N = TypeVar("N", bool, int)
Progress = Callable[[int, int, str], None]
"""Called before each query with how many were answered, how many there are, and the table it reads."""


def verify(
    policy: Policy, source: SourceDescription, engine: LookUps, shelf: PreparedCopies | None = None,
    stored: FactsFile | None = None, progress: Progress | None = None,
) -> Facts:  # fmt: skip
    """What is known of the data from now on; raises ``DataBreaksPolicy`` where it breaks the policy."""
    required = [(r.table, r.broken) for r in requirements(policy, source)]
    optional = _optional_lookups(policy)
    numbers = tuple(_public_lookups(policy))
    looks = _Looks(engine, stored, progress, len(required) + len(optional) + len(numbers))
    for table, query in required:
        if not looks.ask(table, query):
            raise DataBreaksPolicy
    return _beyond(policy, engine, shelf or PreparedCopies(), looks, optional)


def look_up(policy: Policy, engine: LookUps, shelf: PreparedCopies | None = None) -> Facts:
    """What is known of data that need not keep its declarations: beneath the verification."""
    looks = _Looks(engine, None, None, 0)
    return _beyond(policy, engine, shelf or PreparedCopies(), looks, _optional_lookups(policy))


def with_public_facts(policy: Policy, facts: Facts) -> Policy:
    """The policy with what was looked up of its public tables."""

    def number(query: Query) -> int | None:
        return facts.number(write(query))

    return with_contents(with_fan_outs(policy, number), number)


def _beyond(
    policy: Policy, engine: LookUps, shelf: PreparedCopies, looks: _Looks,
    optional: Collection[tuple[str, Query | str]],
) -> Facts:  # fmt: skip
    for table, query in optional:
        looks.try_ask(table, query)
    for table, query in _public_lookups(policy):
        looks.count(table, query)
    kept = dict(_kept(policy, engine, looks))
    places = list_tables(policy, shelf).keys() - _places(policy) | {
        (OVER_LIMIT_CATALOG, name) for name in kept
    }
    for table, query in seen_lookups(policy, places):
        looks.try_ask(table, query, stays=False)
    looks.save()
    return Facts(looks.found, kept, looks.numbers)


def _optional_lookups(policy: Policy) -> Collection[tuple[str, Query | str]]:
    """What only chooses statements; the second check has made its queries, as texts, by itself."""
    return (*lookups(policy), *seen_lookups(policy, _places(policy)))


def _public_lookups(policy: Policy) -> Iterable[tuple[str, Query]]:
    yield from fan_out_lookups(policy)
    yield from content_lookups(policy)


def _places(policy: Policy) -> set[tuple[str, str]]:
    return {("", name) for name in policy.tables}


def _kept(policy: Policy, engine: LookUps, looks: _Looks) -> Iterable[tuple[str, str]]:
    """Keep the rows of units with more of them than declared, of each table where there are few such rows."""
    for table in policy.tables.values():
        if not table.unit_columns or looks.found.get(write(units_over_limit(table)), True):
            continue
        if looks.try_ask(table.name, has_too_many_to_keep(table)):
            name = over_limit_name(table)
            if engine.keep(name, table.name, over_limit_rows(table)):
                yield name, table.name


class _Looks:
    """Asks each query once, or takes what was kept of it."""

    def __init__(
        self, engine: LookUps, stored: FactsFile | None, progress: Progress | None, total: int
    ) -> None:
        self._engine, self._stored = engine, stored
        self._progress, self._total = progress, total
        self.found: dict[str, bool] = {}
        self.numbers: dict[str, int] = {}

    def ask(self, table: str, query: Query | str, *, stays: bool = True) -> bool:
        """Whether the query has no row. ``stays``: for as long as the database is the same."""
        text = _text(query)
        if text not in self.found:
            stored = self._stored if stays else None
            found = self._had(table, text, lambda: self._engine.is_empty(query), stored, bool)
            self.found[text] = found
        return self.found[text]

    def count(self, table: str, query: Query) -> None:
        """Note the number of a query about a public table; what cannot be looked up has none."""
        text = _text(query)
        with suppress(EngineFailed):
            found = self._had(table, text, lambda: self._engine.largest(query), self._stored, int)
            self.numbers[text] = found

    def _had(
        self, table: str, text: str, ask: Callable[[], N], stored: FactsFile | None, kind: type[N]
    ) -> N:  # fmt: skip
        """What is stored of a query, if it is of that kind, or else is found now and kept."""
        known = None if stored is None else stored.get(text)
        if type(known) is kind:
            return known
        if self._progress is not None:
            self._progress(len(self.found) + len(self.numbers), self._total, table)
        found = ask()
        if stored is not None:
            stored.put(text, found)
        return found

    def try_ask(self, table: str, query: Query | str, *, stays: bool = True) -> bool:
        """The same; what cannot be looked up does not hold."""
        try:
            return self.ask(table, query, stays=stays)
        except EngineFailed:
            self.found[_text(query)] = False
            return False

    def save(self) -> None:
        """Keep what was found."""
        if self._stored is not None:
            self._stored.save()


def _text(query: Query | str) -> str:
    """By what a query is known: the text that is made of it."""
    return query if isinstance(query, str) else write(query)
