"""Lanes: fixed numbers of threads that carry out the jobs of several logins in turn.

A login with much work delays itself, and not the others. The next job belongs to the login that
runs the fewest jobs. Logins that run equally many take turns. The last free threads of a lane are
reserved for logins that run nothing in it, so that the first statement of a login begins at once
whatever the others have sent.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from dpsql.execution import begin_again, begin_nothing

Interrupt = Callable[[int], None]


class TooBusy(Exception):
    """A login has as many jobs waiting as it may."""


class Closed(Exception):
    """A lane takes no more jobs, since the process is about to end."""


@dataclass(frozen=True, slots=True)
class LaneState:
    """The load of a lane at one moment."""

    busy: int
    waiting: int
    oldest_seconds: float
    """How long the oldest waiting job has waited; 0 if none waits."""


def _nothing(_: int) -> None:
    """Interrupt nothing: for jobs that are too short to be interrupted."""


class Job:
    """One job of a login. It waits, runs in a thread, and may be stopped at any time."""

    def __init__(
        self, login: Hashable, do: Callable[[], object], interrupt: Interrupt = _nothing
    ) -> None:
        """``interrupt`` stops what a thread does, given the thread's number."""
        self.login, self.future = login, Future[object]()
        self._do, self._interrupt = do, interrupt
        self._lock, self._thread = threading.Lock(), 0
        self.since = 0.0

    def run(self) -> None:
        """Carry out the job in the calling thread, and set its future."""
        if not self.future.set_running_or_notify_cancel():
            return
        with self._lock:
            self._thread = threading.get_ident()
        result, failure = None, None
        try:
            result = self._do()
        except BaseException as error:  # noqa: BLE001 (whoever waits for it is told)
            failure = error
        with self._lock:
            begin_again(self._thread)
            self._thread = 0
        if failure is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(failure)

    def as_future(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[object]:
        """A future of an event loop that ends as the job does.

        It works as ``asyncio.wrap_future``, but makes no reference cycle. So a large result is
        freed as soon as nobody refers to it, and not at the next garbage collection.
        """
        ended: asyncio.Future[object] = loop.create_future()

        def tell(found: Future[object]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_copy, found, ended)

        self.future.add_done_callback(tell)
        return ended

    def stop(self) -> bool:
        """Keep the job from beginning, or interrupt it. Returns True once it has ended.

        A job that is just about to begin an interruptible step misses the interrupt. So the caller
        repeats this until it returns True. The lock keeps the thread from going on to another job
        before this one is interrupted.
        """
        if self.future.cancel() or self.future.done():
            return True
        with self._lock:
            if self._thread:
                begin_nothing(self._thread)
                self._interrupt(self._thread)
        return False


def _copy(found: Future[object], ended: asyncio.Future[object]) -> None:
    """Copy the outcome of a job to the future of the event loop. Called in the loop."""
    if ended.done():
        return
    if found.cancelled():
        ended.cancel()
    elif (failure := found.exception()) is not None:
        ended.set_exception(failure)
    else:
        ended.set_result(found.result())


class Lane:
    """A fixed number of threads, and a queue for each login. Safe to use from several threads."""

    def __init__(
        self, name: str, threads: int, *, spare: int = 0, most_waiting: int | None = None
    ) -> None:
        """No thread is started before there is a job for it.

        ``spare`` threads are kept free for logins that run nothing here. A login that has
        ``most_waiting`` jobs waiting is refused another one.
        """
        self.name, self.threads = name, threads
        self.spare, self.most_waiting = spare, most_waiting
        self._changed = threading.Condition()
        self._queues: OrderedDict[Hashable, deque[Job]] = OrderedDict()
        self._running: Counter[Hashable] = Counter()
        self._started: set[threading.Thread] = set()
        self._closed = False

    def submit(self, job: Job) -> Job:
        """Put the job into its login's queue. Raises ``TooBusy`` or ``Closed`` if it cannot."""
        with self._changed:
            if self._closed:
                raise Closed
            queue = self._queues.setdefault(job.login, deque())
            if self.most_waiting is not None and len(queue) >= self.most_waiting:
                raise TooBusy
            job.since = time.monotonic()
            queue.append(job)
            self._start()
            self._changed.notify()
        login = job.login  # not the job: a reference cycle would stay in memory for long
        job.future.add_done_callback(lambda future: self._forget(login, future))
        return job

    def state(self) -> LaneState:
        """The load of the lane now."""
        with self._changed:
            waiting = [job.since for queue in self._queues.values() for job in queue]
            oldest = time.monotonic() - min(waiting) if waiting else 0.0
            return LaneState(self._running.total(), len(waiting), oldest)

    def close(self) -> None:
        """Begin no more jobs, and cancel those that wait. A thread ends after its current job."""
        with self._changed:
            self._closed = True
            waiting = [job for queue in self._queues.values() for job in queue]
            self._changed.notify_all()
        for job in waiting:
            job.future.cancel()

    def join(self, seconds: float) -> bool:
        """Wait for the threads of a closed lane. Returns False if some do not end in time."""
        end = time.monotonic() + seconds
        for thread in list(self._started):
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._started)

    def _start(self) -> None:
        """Start another thread if all threads have jobs, or will have them at once."""
        jobs = self._running.total() + sum(map(len, self._queues.values()))
        if len(self._started) < min(self.threads, jobs):
            # A daemon, so that the end of the interpreter does not wait for a thread in an engine.
            thread = threading.Thread(target=self._work, name=f"dpsql-{self.name}", daemon=True)
            thread.start()
            self._started.add(
                thread
            )  # only now: if the system refused the thread, the next job tries again

    def _work(self) -> None:
        while (job := self._take()) is not None:
            job.run()
            self._finish(job.login)
            del job

    def _take(self) -> Job | None:
        """Wait for a job that may begin, and take it; None when the lane is closed."""
        with self._changed:
            while not self._closed:
                login = self._next()
                if login is not None:
                    queue = self._queues[login]
                    job = queue.popleft()
                    self._queues.move_to_end(login)
                    if not queue:
                        del self._queues[login]
                    self._running[login] += 1
                    return job
                self._changed.wait()
            return None

    def _next(self) -> Hashable | None:
        """The login whose job may begin now: in turn, one of those that run the fewest jobs."""
        waiting = [login for login, queue in self._queues.items() if queue]
        login = min(waiting, key=lambda login: self._running[login], default=None)
        free = self.threads - self._running.total()
        if login is None or (self._running[login] and free <= self.spare):
            return None
        return login

    def _finish(self, login: Hashable) -> None:
        with self._changed:
            self._running[login] -= 1
            if not self._running[login]:
                del self._running[login]
            self._changed.notify()

    def _forget(self, login: Hashable, future: Future[object]) -> None:
        """Remove a job from its queue if it was cancelled while it waited."""
        if not future.cancelled():
            return
        with self._changed:
            queue = self._queues.get(login)
            job = next((job for job in queue or () if job.future is future), None)
            if queue is not None and job is not None:
                queue.remove(job)
                if not queue:
                    del self._queues[login]
