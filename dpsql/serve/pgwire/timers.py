"""The timers of one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Timers:
    """At most one timer of each name."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """No timer runs at first."""
        self._loop = loop
        self._running: dict[str, asyncio.TimerHandle] = {}

    def set(self, name: str, seconds: float, do: Callable[[], object]) -> None:
        """Start a timer, in place of one of this name."""
        self.cancel(name)
        self._running[name] = self._loop.call_later(seconds, do)

    def default(self, name: str, seconds: float, do: Callable[[], object]) -> None:
        """Start a timer, unless one of this name runs already."""
        if name not in self._running:
            self.set(name, seconds, do)

    def cancel(self, name: str) -> None:
        """Cancel a timer, if it runs."""
        timer = self._running.pop(name, None)
        if timer is not None:
            timer.cancel()

    def cancel_all(self) -> None:
        """Cancel all timers."""
        for name in list(self._running):
            self.cancel(name)
