"""What one connection has asked of the lanes: one request at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dpsql.serve.lanes import Closed, Job, Lane, TooBusy
from dpsql.serve.pgwire.asking import Ask
from dpsql.serve.pgwire.errors import ENDED, TOO_MANY, Fatal, WireError
from dpsql.serve.traffic import Reason, Traffic

Done = Callable[[Ask, object, BaseException | None], None]
Choose = Callable[[], Lane | None]


class Work:
    """The request that is waited for, and the job that carries it out."""

    def __init__(self, done: Done, traffic: Traffic) -> None:
        """``done`` is told, in the loop, what became of a request that is still waited for."""
        self._done, self._traffic = done, traffic
        self._loop = asyncio.get_running_loop()
        self._job: Job | None = None
        self._before: asyncio.Future[object] | None = None
        self.ask: Ask | None = None

    def begin(self, ask: Ask, job: Job, lane: Lane | None, choose: Choose) -> None:
        """Carry out a request in a lane, after whatever still runs for this connection.

        Where it takes too long to see in which one (``lane`` is None), ``choose`` says so in a
        thread.
        """
        self.ask = ask
        if self._before is not None and not self._before.done():
            # forgotten: a thread is still busy with what nobody waits for any more
            self._before.add_done_callback(lambda _: self._begin(ask, job, lane, choose))
        else:
            self._begin(ask, job, lane, choose)

    def _begin(self, ask: Ask, job: Job, lane: Lane | None, choose: Choose) -> None:
        if self.ask is not ask:
            return
        if lane is None:
            chosen = self._submit(ask, self._traffic.light, Job(job.login, choose))
            if chosen is not None:
                chosen.add_done_callback(lambda found: self._chosen(ask, job, found))
            return
        ended = self._submit(ask, lane, job)
        if ended is not None:
            ended.add_done_callback(lambda ended: self._finish(ask, ended))

    def _chosen(self, ask: Ask, job: Job, found: asyncio.Future[object]) -> None:
        if found.cancelled() or found.exception() is not None:
            self._finish(ask, found)
            return
        lane = found.result()
        assert isinstance(lane, Lane)
        self._begin(ask, job, lane, lambda: lane)

    def _submit(self, ask: Ask, lane: Lane, job: Job) -> asyncio.Future[object] | None:
        try:
            lane.submit(job)
        except TooBusy:
            self._loop.call_soon(self._report, ask, None, _too_busy(lane))
            return None
        except Closed:
            self._loop.call_soon(self._report, ask, None, shutting_down())
            return None
        self._job = job
        self._before = job.as_future(self._loop)
        return self._before

    def _finish(self, ask: Ask, ended: asyncio.Future[object]) -> None:
        if self._before is ended:  # what it returned is not kept for as long as the connection
            self._before = self._job = None
        if ended.cancelled():  # it never began: its lane was closed, or nobody waits for it
            self._report(ask, None, shutting_down())
        else:
            error = ended.exception()
            self._report(ask, None if error is not None else ended.result(), error)

    def _report(self, ask: Ask, result: object, error: BaseException | None) -> None:
        """What was forgotten meanwhile is dropped (its charge stays)."""
        if self.ask is ask:
            self._done(ask, result, error)

    def stop(self, reason: Reason) -> None:
        """Nobody waits any more. What has not begun never does, and is not charged.

        What runs is interrupted; what it was charged stays charged.
        """
        self.ask = None
        if self._job is not None:
            self._traffic.stop(self._job, reason)


def shutting_down() -> Fatal:
    """Told to those whose statement has not begun, or has not ended, when the endpoint stops."""
    return Fatal(
        ENDED, "terminating connection due to administrator command",
        hint="What had not begun was not charged; a stored answer is free when it is asked for again.",
    )  # fmt: skip


def _too_busy(lane: Lane) -> WireError:
    return WireError(
        TOO_MANY, "too many statements of this log-in wait for their turn",
        f"At most {lane.most_waiting} may wait, so that memory is left for others.",
        "Send it again when some have ended, or open fewer connections. It was not charged.",
    )  # fmt: skip
