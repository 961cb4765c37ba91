"""The service: the source, ledger, entropy and clock that are open under one policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Self

import pyarrow as pa

from dpsql.diagnostics.operation.events import DataStale, record
from dpsql.diagnostics.operation.gauges import GAUGES, page
from dpsql.diagnostics.refusal import LedgerFailed, PolicyError, Refusal, Refused, SourceMismatch
from dpsql.engines.duckdb import copies
from dpsql.engines.duckdb.engine import Constants, DuckDB
from dpsql.engines.duckdb.guarded import Guarded
from dpsql.engines.duckdb.write import write
from dpsql.engines.facts import Facts
from dpsql.engines.facts_file import FactsFile
from dpsql.engines.lookups import SourceEngine
from dpsql.engines.public_groups import PublicEnumerator
from dpsql.engines.verify import Progress, verify, with_public_facts
from dpsql.execution import execution
from dpsql.ledger import metrics
from dpsql.ledger.accounts import Account, accounts_for
from dpsql.ledger.data_notes import find_change, new_note
from dpsql.ledger.open import open_ledger
from dpsql.ledger.store import Clock, Ledger
from dpsql.ledger.terms import adopt
from dpsql.pipeline import Tools
from dpsql.plan.public_values import distinct_values
from dpsql.policy.against_source import compare
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.policy.types import Kind, Scalar
from dpsql.privacy.entropy import Entropy, Randomness
from dpsql.release.postprocess import PostProcessor
from dpsql.service.pace import Pace
from dpsql.service.plan_cache import PlanCache
from dpsql.service.session import Session
from dpsql.service.views import describe_views
from dpsql.sql.bind.context import Catalog


def _now() -> datetime:
    return datetime.now(UTC)


class Service:
    """One open policy. Open it once; sessions of all roles share it and its ledger."""

    def __init__(
        self, policy: Policy, engine: SourceEngine, ledger: Ledger, *,
        clock: Clock = _now, entropy: Randomness | None = None, facts: Facts | None = None,
        postprocessor: PostProcessor | None = None,
    ) -> None:  # fmt: skip
        """Assemble the parts; ``open`` makes them for a policy file.

        ``facts`` is the outcome of comparing the data with the policy. If it is None, they are
        compared now.
        """
        self.policy = policy
        self.clock = clock
        self.ledger = ledger
        self.plans = PlanCache()
        self.pace = Pace(policy.latency)
        self.counters = metrics.Counters()
        self._engine = engine
        self.data_changed = False
        self.read_from: tuple[int, int, int] | None = (
            None  # which version of the policy's file a reload read
        )
        self.stored_facts: FactsFile | None = None
        self.content = ""
        """The digest of the data; "" for a service over other data than that of a policy's file."""
        self.stale: str | None = None
        """What the owner is told about data that changed while its version did not."""
        self.shelf, self.unprepared = copies.read(policy, engine.prepared)
        self.facts = facts or verify(policy, engine.describe(), engine, self.shelf)
        policy = with_public_facts(policy, self.facts)
        self.policy = policy
        guarded = Guarded(engine, policy, self.shelf, self.facts)
        self.tools = Tools(
            guarded, ledger, entropy or Entropy(),
            PublicEnumerator(Constants(), guarded), postprocessor or PostProcessor(),
        )  # fmt: skip
        self.public_values = _public_values(policy, guarded)
        self.views = describe_views(policy, self.public_values, clock())

    @classmethod
    def open(
        cls, path: Path | str, *, clock: Clock = _now, progress: Progress | None = None
    ) -> Service:
        """Load the policy, check it and the data against each other, open the ledger."""
        policy = load(path)
        engine = DuckDB(policy.source.path, policy.limits, copies.place(policy))
        try:
            source = engine.describe()
            checked = compare(policy, source)
            shelf, _ = copies.read(checked, engine.prepared)
            stored = FactsFile(policy.source.path, engine.state)
            content = stored.content()
            facts = verify(checked, source, engine, shelf, stored, progress)
            ledger = open_ledger(checked, clock)
            try:
                found = cls(checked, engine, ledger, clock=clock, facts=facts)
                found.stored_facts, found.content = stored, content
                found.note_data()
                found.tools.postprocessor.open()  # so that it fails now, not after a charge
                return found
            except BaseException:
                ledger.close()
                raise
        except BaseException:
            engine.close()
            raise

    def reloaded(self) -> Self:
        """A new service with the same source and ledger, under the policy as its file is now.

        The data is compared with the policy anew. Raises if the file cannot be used, if the data
        breaks a declaration, or if the file names another source, ledger or engine, since those are
        opened once. This service then goes on as before, with one exception: if the database is no
        longer the one that was opened and verified, it answers nothing more. The new service may
        answer after its ``take_over``.
        """
        written = _written(self.policy.path)
        if not self._engine.unchanged():
            self.data_changed = True
            raise SourceMismatch(
                f"{self.policy.source.path}: the database has changed since it was opened, and nothing is"
                " answered from it; restart"
            )
        policy = load(self.policy.path)
        for what in ("source", "ledger", "ledger_server", "ledger_keeping", "limits"):
            if getattr(policy, what) != getattr(self.policy, what):
                name = what.partition("_")[0]
                raise SourceMismatch(f"{policy.path}: another `{name}` needs a restart")
        if policy.front.database != self.policy.front.database:  # clients connect by this name
            raise SourceMismatch(f"{policy.path}: another `database` needs a restart")
        engine = self._engine
        source = engine.describe()
        checked = compare(policy, source)
        shelf, _ = copies.read(checked, engine.prepared)
        facts = verify(checked, source, engine, shelf, self.stored_facts)
        found = type(self)(
            checked, engine, self.ledger, clock=self.clock, entropy=self.tools.entropy, facts=facts,
            postprocessor=self.tools.postprocessor,
        )  # fmt: skip
        found.counters, found.stored_facts = self.counters, self.stored_facts
        found.read_from, found.content = written, self.content
        return found

    def note_data(self) -> None:
        """Note policy and data in the ledger where they are new, and find out whether data is stale.

        Raises ``DataChanged`` if the data changed under its version and the policy refuses that.
        """
        policy = self.policy
        self.stale = find_change(policy, self.ledger, self.content)
        adopt(policy, self.ledger, self.clock(), new_note(policy, self.ledger, self.content))
        if self.stale is not None:
            record(DataStale(policy.front.database, policy.data_version))

    def take_over(self) -> None:
        """Note in the ledger that this policy is in force from now on.

        Raises, and notes nothing, if the policy's file was written since it was read: a file that
        is half written can be a valid policy with fewer limits.
        """
        path = self.policy.path
        if self.read_from is None or _written(path) != self.read_from:
            raise PolicyError(
                f"{path}: the file was written while it was read; reload it once it is whole"
            )
        self.note_data()

    def session(
        self, role: str | None = None, name: str = "default", *, behind: str | None = None
    ) -> Session:
        """A session of a role. The role may be None if the policy has only one.

        ``behind`` is the role that logged in and has taken this one. Its accounts are charged too.
        """
        if role is None and len(self.policy.roles) == 1:
            role = next(iter(self.policy.roles))
        if role is None or role not in self.policy.roles:
            known = ", ".join(self.policy.roles)
            said = "no role is named" if role is None else f'there is no role "{role}"'
            raise Refused(Refusal("DP602", said, "Budgets belong to roles.", f"Known: {known}."))
        return Session(self, role, name, behind)

    def share_postprocessor(self, postprocessor: PostProcessor) -> None:
        """Use this post-processor, which other services use too, for all later statements."""
        self.tools = replace(self.tools, postprocessor=postprocessor)

    @contextmanager
    def execution(self, login: str) -> Iterator[None]:
        """Enter the execution of one statement of a login: one deadline, one bound on memory."""
        limits, latency = self.policy.limits, self.policy.latency
        step = 0.0 if latency is None else latency.seconds
        with (
            self.tools.postprocessor.part((self.policy.path, login)) as room,
            execution(limits.timeout_seconds, step, room),
        ):
            yield

    def check_data(self) -> None:
        """Refuse every question once a reload has found that the data is not what was verified."""
        if self.data_changed:
            raise Refused(
                Refusal(
                    "DP604",
                    "the data is not what the policy was verified for",
                    "What protects people rests on what the policy declares of the data.",
                    "The data's owner finds the details with `dpsql check`.",
                )
            )

    def catalog(self, role: str, now: datetime | None = None) -> Catalog:
        """The tables, views and public values that a role may see now."""
        tables = self.policy.roles[role].tables
        visible = frozenset(self.policy.tables) | frozenset(self.policy.views)
        visible = visible if tables is None else tables
        return Catalog(self.policy, now or self.clock(), visible, self.public_values)

    def metrics_text(self) -> str:
        """The metrics of the policy, its ledger and the process, in Prometheus' text form.

        Only accounts that the policy fixes are listed (the data set, tables, roles and their
        default sessions). So the number of lines does not grow with the session names of clients.
        """
        policy, now = self.policy, self.clock()
        found = {
            account.id: account
            for role in policy.roles
            for account in accounts_for(policy, role, tables=policy.tables, now=now)
        }
        return page(
            [
                *metrics.single(metrics.BUILD, 1, version=version("dpsql")),
                *metrics.single(
                    metrics.POLICY, 1, database=policy.front.database, version=policy.version
                ),
                *metrics.single(
                    metrics.STALE, self.stale is not None, database=policy.front.database
                ),
                *self._ledger_lines(tuple(found.values())),
                *self.counters.lines(), *metrics.CHARGES.lines(), *GAUGES.lines(),
            ]
        )  # fmt: skip

    def _ledger_lines(self, accounts: Sequence[Account]) -> list[str]:
        """The lines of accounts and ledger; if it cannot be read, only the line that says so."""
        try:
            balances, size = self.ledger.balances(accounts), self.ledger.size()
        except LedgerFailed:
            return list(metrics.of_ledger(None))
        return [*metrics.of_accounts(balances), *metrics.of_ledger(size)]

    def close(self) -> None:
        """Close the ledger, and then the source, even if closing the ledger fails."""
        try:
            self.ledger.close()
        finally:
            self.tools.engine.close()

    def __enter__(self) -> Self:
        """Return the service; the end of the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the service."""
        self.close()


def _written(path: Path) -> tuple[int, int, int] | None:
    """The file's inode, its size, and the time of its last write; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _public_values(policy: Policy, engine: Guarded) -> Mapping[tuple[str, str], tuple[Scalar, ...]]:
    """The values of each ``values_from``. They are read from public tables, once."""
    wanted = {
        c.values_from: c.kind
        for table in policy.tables.values()
        for c in table.columns.values()
        if c.values_from is not None
    }
    return {
        source: _values(engine.read_public(_distinct(policy, *source)), kind, source)
        for source, kind in wanted.items()
    }


def _distinct(policy: Policy, table: str, column: str) -> str:
    return write(distinct_values(policy.tables[table], column))


def _values(table: pa.Table, kind: Kind, source: tuple[str, str]) -> tuple[Scalar, ...]:
    exact = Fraction if kind is Kind.DOUBLE else lambda value: value
    try:
        return tuple(exact(v) for v in table.column(0).to_pylist())
    except (OverflowError, ValueError):
        name = ".".join(source)
    raise SourceMismatch(
        f"values_from: {name} has dates outside the years 1 to 9999, or numbers that are not finite, which"
        " are no values of a policy; remove them from that table, or list `values`"
    )
