"""Turns of logins in the event loop.

Short work is done in the loop itself, for some milliseconds at a time. In each round of the loop
(between two looks at what all clients have sent) a login has one turn, however many connections it
has; its other connections go on in later rounds, one after the other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

TURN_SECONDS = 0.005
"""After so long in one round of the loop a login's other connections wait for the next."""


class Turns:
    """Only for the event loop's own thread."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._waiting: dict[Hashable, deque[Callable[[], object]]] = {}
        self._used: dict[Hashable, float] = {}
        self._round_ends = False

    def has_had_turn(self, login: Hashable) -> bool:
        """Whether a login has had its turn in this round."""
        return login in self._waiting or self._used.get(login, 0.0) >= TURN_SECONDS

    @contextmanager
    def turn(self, login: Hashable) -> Iterator[None]:
        """Count how long something of a login takes."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            yield
        finally:
            self._used[login] = self._used.get(login, 0.0) + loop.time() - begun
            self._end_round(loop)

    def rest(self, login: Hashable, go_on: Callable[[], object]) -> None:
        """Go on in a later round, after the others of the login that wait."""
        self._waiting.setdefault(login, deque()).append(go_on)
        self._end_round(asyncio.get_running_loop())

    def _end_round(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._round_ends:
            self._round_ends = True
            loop.call_soon(self._next)

    def _next(self) -> None:
        """A round of the loop is over: one of each login goes on."""
        self._round_ends = False
        self._used.clear()
        loop = asyncio.get_running_loop()
        for login, waiting in list(self._waiting.items()):
            loop.call_soon(waiting.popleft())
            if not waiting:
                del self._waiting[login]
        if self._waiting:
            self._end_round(loop)
