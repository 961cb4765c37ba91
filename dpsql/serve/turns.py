"""Gives logins turns in the event loop.

Short work is done in the loop itself, for some milliseconds at a time. In each round of the loop
(between two polls of all connections) a login has one turn, however many connections it has. Its
other connections go on in later rounds, one after the other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

TURN_SECONDS = 0.005
"""The time of a login's turn. After it, its other connections wait for the next round."""


class Turns:
    """The turns of all logins. Used only in the thread of the event loop."""

    def __init__(self) -> None:
        """No connection waits at first."""
        self._waiting: dict[Hashable, deque[Callable[[], object]]] = {}
        self._used: dict[Hashable, float] = {}
        self._round_ends = False

    def has_had_turn(self, login: Hashable) -> bool:
        """Whether a login has had its turn in this round."""
        return login in self._waiting or self._used.get(login, 0.0) >= TURN_SECONDS

    @contextmanager
    def turn(self, login: Hashable) -> Iterator[None]:
        """Count the time of the block as the login's time in this round."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            yield
        finally:
            self._used[login] = self._used.get(login, 0.0) + loop.time() - begun
            self._end_round(loop)

    def rest(self, login: Hashable, go_on: Callable[[], object]) -> None:
        """Call ``go_on`` in a later round, after the other waiting connections of the login."""
        self._waiting.setdefault(login, deque()).append(go_on)
        self._end_round(asyncio.get_running_loop())

    def _end_round(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._round_ends:
            self._round_ends = True
            loop.call_soon(self._next)

    def _next(self) -> None:
        """Begin a new round, in which one waiting connection of each login goes on."""
        self._round_ends = False
        self._used.clear()
        loop = asyncio.get_running_loop()
        for login, waiting in list(self._waiting.items()):
            loop.call_soon(waiting.popleft())
            if not waiting:
                del self._waiting[login]
        if self._waiting:
            self._end_round(loop)
