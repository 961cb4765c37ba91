"""Has the requests of one connection carried out in lanes, one at a time."""

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
        """``done`` is called in the loop with the outcome of a request, unless it was dropped."""
        self._done, self._traffic = done, traffic
        self._loop = asyncio.get_running_loop()
        self._job: Job | None = None
        self._before: asyncio.Future[object] | None = None
        self.ask: Ask | None = None

    def begin(self, ask: Ask, job: Job, lane: Lane | None, choose: Choose) -> None:
        """Carry out a request in a lane, after any job that still runs for this connection.

        If ``lane`` is None, since choosing it takes too long, ``choose`` returns it in a thread.
        """
        self.ask = ask
        if self._before is not None and not self._before.done():
            # A thread is still busy with an earlier request that was dropped.
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
        if self._before is ended:  # so that the result does not stay in memory
            self._before = self._job = None
        if ended.cancelled():  # it never began: its lane was closed, or the request was dropped
            self._report(ask, None, shutting_down())
        else:
            error = ended.exception()
            self._report(ask, None if error is not None else ended.result(), error)

    def _report(self, ask: Ask, result: object, error: BaseException | None) -> None:
        """Pass an outcome on, unless the request was dropped meanwhile. Its charge stays."""
        if self.ask is ask:
            self._done(ask, result, error)

    def stop(self, reason: Reason) -> None:
        """Drop the request.

        A job that has not begun never begins, and is not charged. A running job is interrupted, and
        its charge stays.
        """
        self.ask = None
        if self._job is not None:
            self._traffic.stop(self._job, reason)


def shutting_down() -> Fatal:
    """The error for statements that have not begun, or not ended, when the endpoint stops."""
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
