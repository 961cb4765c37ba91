"""Who asks what another is asking already waits for that answer, instead of paying for it again.

Claim: costs nothing and reveals nothing: whoever waits then looks into the store like anyone else.
It is for the people of one dashboard who open it at once; proxies do not wait for one another.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from dpsql.diagnostics.refusal import EngineFailed


class Flights:
    """Questions that are being answered now. Safe for threads."""

    def __init__(self) -> None:
        """Nothing is being answered yet."""
        self._changed = threading.Condition()
        self._flying: set[Hashable] = set()
        self._waiting: set[int] = set()

    @contextmanager
    def alone(self, question: Hashable) -> Iterator[None]:
        """Nobody else is inside with the same question.

        Raises where waiting was interrupted: nothing was charged, and nothing will be.
        """
        me = threading.get_ident()
        with self._changed:
            self._waiting.add(me)
            self._changed.wait_for(lambda: question not in self._flying or me not in self._waiting)
            if me not in self._waiting:
                raise EngineFailed("interrupted")
            self._waiting.discard(me)
            self._flying.add(question)
        try:
            yield
        finally:
            with self._changed:
                self._flying.discard(question)
                self._changed.notify_all()

    def interrupt(self, thread: int) -> None:
        """Whoever waits in a thread waits no longer, and asks nothing."""
        with self._changed:
            self._waiting.discard(thread)
            self._changed.notify_all()

    def __len__(self) -> int:
        """How many questions are being answered."""
        return len(self._flying)
