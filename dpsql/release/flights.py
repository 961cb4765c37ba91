"""Who asks what another is asking already waits for that answer, instead of paying for it again.

Claim: costs nothing and reveals nothing: whoever waits then looks into the store like anyone else.
It is for the people of one dashboard who open it at once; proxies do not wait for one another.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Flight:
    lock: threading.Lock = field(default_factory=threading.Lock)
    waiting: int = 0


class Flights:
    """Questions that are being answered now. Safe for threads."""

    def __init__(self) -> None:
        """Nothing is being answered yet."""
        self._lock = threading.Lock()
        self._flights: dict[Hashable, _Flight] = {}

    @contextmanager
    def alone(self, question: Hashable) -> Iterator[None]:
        """Nobody else is inside with the same question."""
        with self._lock:
            flight = self._flights.setdefault(question, _Flight())
            flight.waiting += 1
        try:
            with flight.lock:
                yield
        finally:
            with self._lock:
                flight.waiting -= 1
                if not flight.waiting:
                    del self._flights[question]

    def __len__(self) -> int:
        """How many questions are being answered."""
        return len(self._flights)
