"""Plans questions under variants of one policy, without reading a private row.

Claim: what a planner says of a question depends on the statement, the policy, the source's catalog
    and its public tables only.
Assumes: planning and pricing depend on these alone (``service.session.Session.prepare``).
Argument: the source is opened for its catalog and for public rows. No declaration is compared with
    the data, no prepared copy is looked for, and no statement of a measurement is run. The ledger
    is new and empty.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from dpsql.engines.duckdb.engine import DuckDB
from dpsql.engines.facts import Facts
from dpsql.engines.lookups import SourceEngine
from dpsql.engines.verify import look_up_public
from dpsql.ledger.open import open_ledger
from dpsql.ledger.store import Ledger
from dpsql.policy.against_source import compare
from dpsql.policy.model import LedgerKeeping, Policy
from dpsql.policy.version import answers_key, version_of
from dpsql.release.postprocess import PostProcessor
from dpsql.service import Service

PATIENCE = 3600.0
"""Seconds for one question. No client waits for it, so the limits on waiting do not hold."""


def _now() -> datetime:
    return datetime.now(UTC)


class Planner:
    """Services for variants of a policy, which share one engine and a ledger of their own."""

    def __init__(self, policy: Policy, engine: SourceEngine, ledger: Ledger) -> None:
        """Called by ``open_planner``."""
        self.policy = policy
        """The policy, as it was compared with the source's catalog."""
        self._engine, self._ledger = engine, ledger
        self._facts: Facts = look_up_public(policy, engine)
        self._postprocessor = PostProcessor()
        self._services: dict[str, Service] = {}

    def service(self, variant: Policy) -> Service:
        """A service under a variant of the policy. It is not to be closed."""
        variant = replace(variant, version=version_of(variant), answers_key=answers_key(variant))
        if variant.version not in self._services:
            self._services[variant.version] = Service(
                variant, self._engine, self._ledger, clock=_now, facts=self._facts,
                postprocessor=self._postprocessor,
            )  # fmt: skip
        return self._services[variant.version]


@contextmanager
def open_planner(policy: Policy) -> Iterator[Planner]:
    """Open the source of a policy for planning. Its own ledger is not opened."""
    limits = replace(policy.limits, timeout_seconds=PATIENCE)
    policy = replace(policy, limits=limits, latency=None)
    engine = DuckDB(policy.source.path, policy.limits)
    with closing(engine), tempfile.TemporaryDirectory(prefix="dpsql-forecast-") as folder:
        policy = compare(policy, engine.describe())
        policy = replace(
            policy, ledger=Path(folder) / "ledger.db", ledger_server=None,
            ledger_keeping=LedgerKeeping(),
        )  # fmt: skip
        with closing(open_ledger(policy, _now)) as ledger:
            yield Planner(policy, engine, ledger)
