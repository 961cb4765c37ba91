"""The parts of a service (``service.Service``) that its sessions use."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from dpsql.ledger import metrics
from dpsql.ledger.store import Clock, Ledger
from dpsql.pipeline import Tools
from dpsql.policy.model import Policy
from dpsql.policy.prepared_copies import PreparedCopies
from dpsql.policy.types import Scalar
from dpsql.service.pace import Pace
from dpsql.service.plan_cache import PlanCache
from dpsql.service.reply import Remaining
from dpsql.service.views import ViewShape
from dpsql.sql.bind.context import Catalog


class Budgeted(Protocol):
    """A session, seen only as the holder of accounts."""

    def budget(self) -> tuple[Remaining, ...]:
        """The balance of each account of the session."""
        ...


class ServiceParts(Protocol):
    """The parts that are open under one policy."""

    policy: Policy
    ledger: Ledger
    tools: Tools
    plans: PlanCache
    pace: Pace
    counters: metrics.Counters
    clock: Clock
    shelf: PreparedCopies
    public_values: Mapping[tuple[str, str], tuple[Scalar, ...]]
    views: dict[str, ViewShape]

    def catalog(self, role: str, now: datetime | None = None) -> Catalog:
        """The tables, views and public values that a role may see now."""
        ...

    def check_data(self) -> None:
        """Refuse every question once the data is no longer the data that was verified."""
        ...

    def execution(self, login: str) -> AbstractContextManager[None]:
        """Enter the execution of one statement of a login."""
        ...

    def session(self, role: str) -> Budgeted:
        """A new session of a role."""
        ...
