"""Who asks what another is asking already waits for that answer, instead of paying for it again.

It is for the people of one dashboard who open it at once; proxies do not wait for one another.

Claim: costs nothing and reveals nothing.
Assumes: what is awaited follows from the question and the store.
Argument: whoever waits then looks into the store like anyone else.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from dpsql.execution import check, has_ended, on_released_values, stoppable


class SingleFlight:
    """Questions that are being answered now. Safe for threads."""

    def __init__(self) -> None:
        """Nothing is being answered yet."""
        self._changed = threading.Condition()
        self._held: set[Hashable] = set()
        self.finished = 0
        """How many questions were let go: the store is the same as long as this is."""

    @contextmanager
    def hold(self, question: Hashable, seen: int = 0) -> Iterator[bool]:
        """Nobody else is inside with the same question.

        Gives whether any question was let go since ``finished`` was ``seen``: then the store may hold more.
        Raises ``Stopped`` where this execution ends while it waits: nothing was charged, and nothing will be.
        """
        with on_released_values(), stoppable(self._wake), self._changed:
            self._changed.wait_for(lambda: question not in self._held or has_ended())
            check()
            self._held.add(question)
            changed = self.finished != seen
        try:
            yield changed
        finally:
            with self._changed:
                self._held.discard(question)
                self.finished += 1
                self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def __len__(self) -> int:
        """How many questions are being answered."""
        return len(self._held)
