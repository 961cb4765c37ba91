"""The parts that all faces of one process share: lanes of threads, newcomers, delays, counters."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from dpsql.diagnostics.operation.events import StatementStopped, record
from dpsql.serve.lanes import Job, Lane, LaneState
from dpsql.serve.newcomers import Newcomers
from dpsql.serve.throttle import Throttle
from dpsql.serve.turns import Turns

Reason = Literal["cancel", "timeout", "disconnect", "terminate", "shutdown"]
REASONS: tuple[Reason, ...] = ("cancel", "timeout", "disconnect", "terminate", "shutdown")
AGAIN = 0.1
"""Seconds after which a job that should stop is interrupted again."""
MOST_WAITING = 256
"""The most statements of one login that may wait in a lane."""


MOST_LOGINS, MOST_TOGETHER = 32, 5
"""Up to ``MOST_LOGINS`` logins may each run one statement in a lane. A login that runs one may
begin another only while fewer than ``MOST_TOGETHER`` statements run in the lane.

So a person with several logins does not occupy all threads."""


def _data() -> Lane:
    spare = MOST_LOGINS - MOST_TOGETHER
    return Lane("data", MOST_LOGINS, spare=spare, most_waiting=MOST_WAITING)


def _catalog() -> Lane:
    spare = MOST_LOGINS - MOST_TOGETHER
    return Lane("catalog", MOST_LOGINS, spare=spare, most_waiting=MOST_WAITING)


def _light() -> Lane:
    return Lane("light", 4, spare=2)


def _proofs() -> Lane:
    return Lane("proofs", 1)


@dataclass(frozen=True, slots=True)
class Gauges:
    """The current load of an endpoint, for metrics."""

    newcomers: int
    """Connections that have not logged in, of all faces."""
    displaced: int
    """Connections that were displaced by others before they logged in, so far."""
    lanes: dict[str, LaneState]
    stopped: dict[str, int]
    """Statements that were stopped so far, by reason."""


@dataclass(slots=True)
class Traffic:
    """The parts that all faces of one process share."""

    data: Lane = field(default_factory=_data)
    """For statements that read the data, or are planned as such statements are."""
    catalog: Lane = field(default_factory=_catalog)
    """For statements that read the catalog or the ledger. Their threads mostly wait for others."""
    light: Lane = field(default_factory=_light)
    """For short work that waits for nothing: reading a script, writing rows, changing a setting."""
    proofs: Lane = field(default_factory=_proofs)
    """For checking passwords, in turn by address. So log-ins delay nobody who has logged in."""
    newcomers: Newcomers = field(default_factory=lambda: Newcomers(400, 200))
    turns: Turns = field(default_factory=Turns)
    throttle: Throttle = field(default_factory=Throttle)
    """The delays of log-ins after failed ones, on all faces together."""
    stopped: Counter[Reason] = field(default_factory=Counter)
    draining: bool = False

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """All lanes."""
        return self.data, self.catalog, self.light, self.proofs

    def gauges(self) -> Gauges:
        """The current load. May be called in any thread."""
        return Gauges(
            len(self.newcomers), self.newcomers.displaced,
            {lane.name: lane.state() for lane in self.lanes},
            {reason: self.stopped[reason] for reason in REASONS},
        )  # fmt: skip

    def stop(self, job: Job, reason: Reason) -> None:
        """Stop a job, and repeat this until it has ended. A charge that was made stays."""
        if not job.future.done():
            self.stopped[reason] += 1
            if isinstance(job.login, tuple):  # otherwise nobody has logged in yet
                record(StatementStopped(reason, str(job.login[-1])))
            self._stop(job)

    def _stop(self, job: Job) -> None:
        if not job.stop():
            asyncio.get_running_loop().call_later(AGAIN, self._stop, job)

    def drain(self) -> None:
        """Begin no more statements. Those that run go on, and their answers are still sent."""
        self.draining = True
        for lane in (self.data, self.catalog, self.proofs):
            lane.close()

    def close(self) -> None:
        """Begin no more jobs of any kind."""
        self.draining = True
        for lane in self.lanes:
            lane.close()

    def ended(self) -> bool:
        """Whether all threads of all lanes have ended."""
        return all(lane.join(0.0) for lane in self.lanes)
