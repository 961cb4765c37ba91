"""What happens to a connection after a while, unless something else happens first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Timers:
    """At most one timer of each name."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """None runs."""
        self._loop = loop
        self._running: dict[str, asyncio.TimerHandle] = {}

    def set(self, name: str, seconds: float, do: Callable[[], object]) -> None:
        """Do something later, in place of what a timer of this name would have done."""
        self.cancel(name)
        self._running[name] = self._loop.call_later(seconds, do)

    def default(self, name: str, seconds: float, do: Callable[[], object]) -> None:
        """Do something later, unless a timer of this name runs already."""
        if name not in self._running:
            self.set(name, seconds, do)

    def cancel(self, name: str) -> None:
        """Not any more."""
        timer = self._running.pop(name, None)
        if timer is not None:
            timer.cancel()

    def cancel_all(self) -> None:
        """Nothing of it any more."""
        for name in list(self._running):
            self.cancel(name)
