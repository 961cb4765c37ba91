"""What one connection has asked of the workers: one request at a time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future

from dpsql.serve.pgwire.asking import Ask, Backend

AGAIN = 0.1
"""Seconds after which a request that should stop is told so again."""
Done = Callable[[Ask, object, BaseException | None], None]


class Work:
    """The request that is waited for, and the thread that carries it out."""

    def __init__(self, done: Done) -> None:
        """``done`` is told, in the loop, what became of a request that is still waited for."""
        self._done, self._loop = done, asyncio.get_running_loop()
        self._lock, self._thread = threading.Lock(), 0
        self._task: Future[object] | None = None
        self._ended: asyncio.Future[object] | None = None
        self.ask: Ask | None = None

    def begin(self, ask: Ask, backend: Backend, workers: Executor) -> None:
        """Carry out a request in a worker, after whatever still runs for this connection."""
        self.ask = ask
        if self._ended is None or self._ended.done():
            self._submit(ask, backend, workers)
        else:  # forgotten: the worker is still busy with what nobody waits for any more
            self._ended.add_done_callback(lambda _: self._submit(ask, backend, workers))

    def rest(self, ask: Ask) -> None:
        """A request to let others have their turn."""
        self.ask = ask
        self._loop.call_soon(self._worked, ask, None, None)

    def _submit(self, ask: Ask, backend: Backend, workers: Executor) -> None:
        if self.ask is not ask:
            return
        self._task = workers.submit(self._perform, ask, backend)
        self._ended = asyncio.wrap_future(self._task)
        self._ended.add_done_callback(lambda ended: self._over(ask, ended))

    def _perform(self, ask: Ask, backend: Backend) -> object:
        """In a worker: carry it out, and let it be known where that is done."""
        with self._lock:
            self._thread = threading.get_ident()
        try:
            return ask.perform(backend)
        finally:
            with self._lock:
                self._thread = 0

    def _over(self, ask: Ask, ended: asyncio.Future[object]) -> None:
        if not ended.cancelled():
            error = ended.exception()
            self._worked(ask, None if error is not None else ended.result(), error)

    def _worked(self, ask: Ask, result: object, error: BaseException | None) -> None:
        """What was forgotten meanwhile is dropped (its charge stays)."""
        if self.ask is ask:
            self._done(ask, result, error)

    def forget(self) -> None:
        """Nobody waits any more. What no thread has begun is not begun, so that it is not charged."""
        self.ask = None
        if self._task is not None:
            self._task.cancel()

    def stop(self, backend: Backend) -> None:
        """Interrupt the engine where it runs. What was charged stays charged.

        The lock keeps the worker from going on to another connection's statement before this one's
        is stopped.
        """
        if self._task is not None:
            self._stop(self._task, backend)

    def _stop(self, task: Future[object], backend: Backend) -> None:
        """Until it has ended: an engine that is about to begin does not hear it the first time."""
        if task.cancel() or task.done():
            return
        with self._lock:
            if self._thread:
                backend.interrupt(self._thread)
        self._loop.call_later(AGAIN, self._stop, task, backend)
