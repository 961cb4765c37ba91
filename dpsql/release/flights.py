"""Who asks what another is asking already waits for that answer, instead of paying for it again.

Claim: costs nothing and reveals nothing: whoever waits then looks into the store like anyone else.
It is for the people of one dashboard who open it at once; proxies do not wait for one another.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from dpsql.execution import check, ended, released, stoppable


class Flights:
    """Questions that are being answered now. Safe for threads."""

    def __init__(self) -> None:
        """Nothing is being answered yet."""
        self._changed = threading.Condition()
        self._flying: set[Hashable] = set()

    @contextmanager
    def alone(self, question: Hashable) -> Iterator[None]:
        """Nobody else is inside with the same question.

        Raises ``Stopped`` where this execution ends while it waits: nothing was charged, and nothing will be.
        """
        with released(), stoppable(self._wake), self._changed:
            self._changed.wait_for(lambda: question not in self._flying or ended())
            check()
            self._flying.add(question)
        try:
            yield
        finally:
            with self._changed:
                self._flying.discard(question)
                self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def __len__(self) -> int:
        """How many questions are being answered."""
        return len(self._flying)
