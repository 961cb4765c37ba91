"""Checks that the parts which an answer needs work: ledger, engine, catalog and lanes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

from dpsql.diagnostics.operation.events import Probe, ReadinessChanged, record
from dpsql.diagnostics.operation.gauges import GAUGES
from dpsql.engines.catalog.pool import WORKERS
from dpsql.execution import execution, interrupt
from dpsql.serve.lanes import Job
from dpsql.serve.policy_snapshot import PolicySnapshot
from dpsql.serve.traffic import Traffic

SECONDS = 1.0
"""The time in which each part must answer."""
KEPT_SECONDS = 1.0
"""The time for which an outcome is returned again, so that many requests cause no work."""
_WHO = "readiness"
"""A login that nobody has. Its jobs wait in the lanes as the first statement of a login does."""
HealthLook = Callable[[], object]


class Part:
    """A part whose check runs in a thread of its own, since the check may hang."""

    def __init__(self, name: Probe, look: HealthLook) -> None:
        """``look`` raises, or takes too long, if the part does not work."""
        self.name, self._look = name, look
        self._thread: threading.Thread | None = None

    async def works(self) -> bool:
        """Whether the check succeeds in time. While an earlier check hangs, no other is started."""
        if self._thread is not None and self._thread.is_alive():
            return False
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[bool] = loop.create_future()
        self._thread = threading.Thread(
            target=self._ask, args=(loop, answered), name=f"dpsql-ready-{self.name}", daemon=True
        )
        self._thread.start()
        try:
            return await asyncio.wait_for(answered, SECONDS)
        except TimeoutError:
            if self._thread.ident is not None:
                interrupt(self._thread.ident, at_once=True)
                WORKERS.interrupt(self._thread.ident)
            return False

    def _ask(self, loop: asyncio.AbstractEventLoop, answered: asyncio.Future[bool]) -> None:
        works = True
        try:
            self._look()
        except Exception:  # noqa: BLE001 (whatever it is, it does not work; who asks learns no more)
            works = False
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(_tell, answered, works)


def _tell(answered: asyncio.Future[bool], works: bool) -> None:  # noqa: FBT001 (one argument)
    if not answered.done():
        answered.set_result(works)


class Health:
    """Checks all parts when somebody asks, and at most once a second."""

    def __init__(self, now: Callable[[], Mapping[str, PolicySnapshot]], traffic: Traffic) -> None:
        """``now`` gives the newest snapshots of the policies."""
        self._now, self._traffic = now, traffic
        self.parts = (
            Part("ledger", self._ledger), Part("engine", self._engine),
            Part("catalog", WORKERS.check), Part("lanes", self._lanes),
        )  # fmt: skip
        self._looking: asyncio.Task[tuple[Probe, ...]] | None = None
        self._until = 0.0
        self._failing: tuple[Probe, ...] | None = None
        GAUGES.add("dpsql_ready", self._gauge)

    async def failing(self) -> tuple[Probe, ...]:
        """The names of the parts that do not work. All who ask at the same time share one check."""
        loop = asyncio.get_running_loop()
        if self._looking is None or (self._looking.done() and loop.time() >= self._until):
            self._looking = loop.create_task(self._look())
        return await asyncio.shield(self._looking)

    async def _look(self) -> tuple[Probe, ...]:
        works = await asyncio.gather(*(part.works() for part in self.parts))
        found = tuple(p.name for p, fine in zip(self.parts, works, strict=True) if not fine)
        self._until = asyncio.get_running_loop().time() + KEPT_SECONDS
        if found != self._failing:
            self._record(found)
        self._failing = found
        return found

    def _record(self, found: tuple[Probe, ...]) -> None:
        for name in found:
            record(ReadinessChanged("no", name))
        if not found and self._failing:
            record(ReadinessChanged("yes"))

    def _gauge(self) -> Mapping[tuple[str, ...], float]:
        if self._failing is None:
            return {}
        return {(part.name,): float(part.name not in self._failing) for part in self.parts}

    def _ledger(self) -> None:
        for snapshot in self._now().values():
            snapshot.service.ledger.probe(SECONDS)

    def _engine(self) -> None:
        for snapshot in self._now().values():
            with execution(SECONDS):
                snapshot.service.tools.engine.probe()

    def _lanes(self) -> None:
        lanes = (
            self._traffic.data,
            self._traffic.catalog,
            self._traffic.light,
            self._traffic.proofs,
        )
        jobs = [lane.submit(Job(_WHO, lambda: None)) for lane in lanes]
        try:
            for job in jobs:
                job.future.result(SECONDS)
        finally:
            for job in jobs:
                job.stop()
