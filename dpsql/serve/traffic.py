"""What the faces of one process share: lanes of threads, places of newcomers, and what was stopped."""

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
"""Seconds after which a job that should stop is told so again."""
MOST_WAITING = 256
"""Statements of one login that may wait in a lane."""


MOST_LOGINS, MOST_TOGETHER = 32, 5
"""So many log-ins may each run a statement in a lane; further ones of theirs begin while fewer than this run.

A person who has several log-ins does not keep all threads with them."""


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
    """How much is going on, for metrics."""

    newcomers: int
    """Connections that have not logged in, of all faces."""
    displaced: int
    """Connections that gave way to others before they logged in, so far."""
    lanes: dict[str, LaneState]
    stopped: dict[str, int]
    """Statements that were stopped so far, by reason."""


@dataclass(slots=True)
class Traffic:
    """What the faces of one process share."""

    data: Lane = field(default_factory=_data)
    """For statements that read the data, or are planned as if they did."""
    catalog: Lane = field(default_factory=_catalog)
    """For what reads the catalog or the ledger: its threads wait for others."""
    light: Lane = field(default_factory=_light)
    """For what is soon done by itself: reading a script, writing rows, changing a setting."""
    proofs: Lane = field(default_factory=_proofs)
    """For passwords of whoever knocks, in turn by address: they keep nobody waiting who is inside."""
    newcomers: Newcomers = field(default_factory=lambda: Newcomers(400, 200))
    turns: Turns = field(default_factory=Turns)
    throttle: Throttle = field(default_factory=Throttle)
    """How long whoever failed to log in waits, on whichever face."""
    stopped: Counter[Reason] = field(default_factory=Counter)
    draining: bool = False

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """All lanes."""
        return self.data, self.catalog, self.light, self.proofs

    def gauges(self) -> Gauges:
        """How much is going on now; may be asked in any thread."""
        return Gauges(
            len(self.newcomers), self.newcomers.displaced,
            {lane.name: lane.state() for lane in self.lanes},
            {reason: self.stopped[reason] for reason in REASONS},
        )  # fmt: skip

    def stop(self, job: Job, reason: Reason) -> None:
        """Stop a job, and go on until it has ended. What was charged stays charged."""
        if not job.future.done():
            self.stopped[reason] += 1
            if isinstance(job.login, tuple):  # else nobody has logged in
                record(StatementStopped(reason, str(job.login[-1])))
            self._stop(job)

    def _stop(self, job: Job) -> None:
        if not job.stop():
            asyncio.get_running_loop().call_later(AGAIN, self._stop, job)

    def drain(self) -> None:
        """Begin no more statements. What runs goes on, and its answers are still written."""
        self.draining = True
        for lane in (self.data, self.catalog, self.proofs):
            lane.close()

    def close(self) -> None:
        """Begin nothing more at all."""
        self.draining = True
        for lane in self.lanes:
            lane.close()

    def ended(self) -> bool:
        """Whether no thread of a lane works any more."""
        return all(lane.join(0.0) for lane in self.lanes)
