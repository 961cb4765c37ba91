"""A question that is being answered already is awaited, instead of being paid for twice.

This is for many people who open one dashboard at once. It works within one process; several proxies
do not wait for one another.

Claim: waiting costs nothing and reveals nothing.
Assumes: whether a session waits depends on the question and the store only.
Argument: a session that has waited then looks into the store like any other.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from dpsql.execution import check, has_ended, on_released_values, stoppable


class SingleFlight:
    """Questions that are being answered now. Safe for threads."""

    def __init__(self) -> None:
        """No question is being answered yet."""
        self._changed = threading.Condition()
        self._held: set[Hashable] = set()
        self.finished = 0
        """The number of questions that were finished; while it is unchanged, so is the store."""

    @contextmanager
    def hold(self, question: Hashable, seen: int = 0) -> Iterator[bool]:
        """Hold a question, which nobody else can hold meanwhile; waits until it is free.

        Yields whether any question was finished since ``finished`` was ``seen``; the store may then
        hold more. Raises ``Stopped`` if this execution ends while it waits: nothing was charged,
        and nothing will be.
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
        """The number of questions that are being answered."""
        return len(self._held)
