"""The comparison of the data with the policy's declarations, when a policy is opened.

It never runs because of a query.

Claim: if ``verify`` returns, every declaration that ``declarations.requirements`` lists as verified
    holds for the rows that the engine has open. Nobody learns more than whether it returns: the
    error has no number, and names no declaration.
Assumes: the database does not change while it is open. It is opened read-only, and
    ``engines.duckdb.engine`` refuses to open a file that has changed while this process had it
    open.
Argument: each requirement of the declarations is a query that the engine answers here, or that was
    answered for the same state of the same file (``engines.facts_file``). If a query has a row, or
    could not be answered, the policy is refused.

For public tables, the numbers of rows that share a value (``plan.fan_outs``) and the content
numbers (``plan.contents``) are looked up. Further facts of private tables only choose cheaper
statements (``declarations.queries``, ``guard.seen``). They are looked up here too, and a fact that
could not be looked up is not relied on.
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
"""Called before each step with the number of steps that are done, of all, and what it is about: a table."""


def verify(
    policy: Policy, source: SourceDescription, engine: LookUps, shelf: PreparedCopies | None = None,
    stored: FactsFile | None = None, progress: Progress | None = None,
) -> Facts:  # fmt: skip
    """The facts of the data. Raises ``DataBreaksPolicy`` if the data breaks the policy."""
    required = [(r.table, r.broken) for r in requirements(policy, source)]
    optional = _optional_lookups(policy)
    numbers = tuple(_public_lookups(policy))
    looks = _Looks(engine, stored, progress, len(required) + len(optional) + len(numbers))
    for table, query in required:
        if not looks.ask(table, query):
            raise DataBreaksPolicy
    return _beyond(policy, engine, shelf or PreparedCopies(), looks, optional)


def look_up(policy: Policy, engine: LookUps, shelf: PreparedCopies | None = None) -> Facts:
    """The facts of data that need not keep its declarations. It verifies no requirement."""
    looks = _Looks(engine, None, None, 0)
    return _beyond(policy, engine, shelf or PreparedCopies(), looks, _optional_lookups(policy))


def look_up_public(policy: Policy, engine: LookUps) -> Facts:
    """The numbers of public tables alone. It reads no private row and verifies no requirement."""
    looks = _Looks(engine, None, None, 0)
    for table, query in _public_lookups(policy):
        looks.count(table, query)
    return Facts(numbers=looks.numbers)


def with_public_facts(policy: Policy, facts: Facts) -> Policy:
    """The policy with the looked-up numbers of its public tables."""

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
    """The look-ups that only choose statements. Those of the second check are its own texts."""
    return (*lookups(policy), *seen_lookups(policy, _places(policy)))


def _public_lookups(policy: Policy) -> Iterable[tuple[str, Query]]:
    yield from fan_out_lookups(policy)
    yield from content_lookups(policy)


def _places(policy: Policy) -> set[tuple[str, str]]:
    return {("", name) for name in policy.tables}


def _kept(policy: Policy, engine: LookUps, looks: _Looks) -> Iterable[tuple[str, str]]:
    """Keep the rows of units above the row limit, for each table with few such rows."""
    for table in policy.tables.values():
        if not table.unit_columns or looks.found.get(write(units_over_limit(table)), True):
            continue
        if looks.try_ask(table.name, has_too_many_to_keep(table)):
            name = over_limit_name(table)
            if engine.keep(name, table.name, over_limit_rows(table)):
                yield name, table.name


class _Looks:
    """Asks each query once, or uses the outcome that was kept of it."""

    def __init__(
        self, engine: LookUps, stored: FactsFile | None, progress: Progress | None, total: int
    ) -> None:
        self._engine, self._stored = engine, stored
        self._progress, self._total = progress, total
        self.found: dict[str, bool] = {}
        self.numbers: dict[str, int] = {}

    def ask(self, table: str, query: Query | str, *, stays: bool = True) -> bool:
        """Whether the query has no row. ``stays``: this holds while the database is unchanged."""
        text = _text(query)
        if text not in self.found:
            stored = self._stored if stays else None
            found = self._had(table, text, lambda: self._engine.is_empty(query), stored, bool)
            self.found[text] = found
        return self.found[text]

    def count(self, table: str, query: Query) -> None:
        """Record the number of a query about a public table; none if it cannot be looked up."""
        text = _text(query)
        with suppress(EngineFailed):
            found = self._had(table, text, lambda: self._engine.largest(query), self._stored, int)
            self.numbers[text] = found

    def _had(
        self, table: str, text: str, ask: Callable[[], N], stored: FactsFile | None, kind: type[N]
    ) -> N:  # fmt: skip
        """The stored outcome of a query, if it has that type, or else a new one, which is kept."""
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
        """Whether the query has no row; False if it cannot be looked up."""
        try:
            return self.ask(table, query, stays=stays)
        except EngineFailed:
            self.found[_text(query)] = False
            return False

    def save(self) -> None:
        """Keep the outcomes."""
        if self._stored is not None:
            self._stored.save()


def _text(query: Query | str) -> str:
    """The text of a query, by which it is known."""
    return query if isinstance(query, str) else write(query)
