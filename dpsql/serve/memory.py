"""A bounded memory: what was used least recently is forgotten first; and giving memory back."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

import pyarrow as pa

V = TypeVar("V")


class Memory(Generic[V]):
    """Values by key, at most ``most`` of them. Safe to use from several threads."""

    def __init__(self, most: int) -> None:
        """Empty."""
        self._most, self._lock = most, threading.Lock()
        self._known: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        """What is known under a key."""
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def put(self, key: Hashable, value: V) -> None:
        """Remember, and forget what was not used for longest."""
        with self._lock:
            self._known[key] = value
            self._known.move_to_end(key)
            while len(self._known) > self._most:
                self._known.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._known.clear()


class Held:
    """How much of large answers is kept for those who read on. Safe to use from several threads."""

    def __init__(self, most: int, large: int = 100_000) -> None:
        """At most ``most`` bytes; answers below ``large`` bytes are not counted."""
        self.most, self.large, self._lock = most, large, threading.Lock()
        self._sizes: dict[int, int] = {}

    @property
    def bytes(self) -> int:
        """What is kept now."""
        return sum(list(self._sizes.values()))

    def hold(self, holder: object, size: int) -> None:
        """Count so many bytes for as long as their holder is there."""
        if size >= self.large:
            with self._lock:
                self._sizes[id(holder)] = size
            weakref.finalize(holder, self._sizes.pop, id(holder), None)


HELD = Held(2_000_000_000)
"""What open cursors and portals of all sessions of this process keep together."""


def give_back() -> None:
    """What allocators keep of an answer that is gone goes back to the system, where they can."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
