"""A cache whose entries are counted in bytes, and are evicted for holds in the same pool."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Generic, ParamSpec, TypeVar

from dpsql.memory.pool import POOL, Pool, Use
from dpsql.memory.sizes import size_of

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")
ENTRY = 200
"""The bytes of an entry in addition to its key and value."""


class _Entry(Generic[V]):
    __slots__ = ("size", "used", "value")

    def __init__(self, value: V, size: int, used: int) -> None:
        self.value, self.size, self.used = value, size, used


class Cache(Generic[K, V]):
    """Values by key, at most ``most`` of them. Safe to use from several threads.

    A value for which the pool has no room, or which is too large for a cache, is not stored.
    """

    def __init__(
        self, use: Use, most: int, *, size: Callable[[K, V], int] = size_of, pool: Pool = POOL
    ) -> None:
        """An empty cache. ``size`` returns the bytes of a key and its value."""
        self.use, self.bytes = use, 0
        self._most, self._size, self._pool = most, size, pool
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._lookups = pool.join(self)

    def __del__(self) -> None:
        """Have the bytes of all entries subtracted. This may run in any thread, at any time."""
        if self.bytes:
            self._pool.dropped.append((None, None, self.bytes))

    def __len__(self) -> int:
        """The number of entries."""
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """The value of a key; None if there is none."""
        with self._pool.lock:
            found = self._entries.get(key)
            if found is None:
                self._lookups[1] += 1
                return None
            self._entries.move_to_end(key)
            found.used = next(self._pool.clock)
            self._lookups[0] += 1
            return found.value

    def put(self, key: K, value: V) -> None:
        """Store a value; if there are too many, evict the least recently used one."""
        size = ENTRY + self._size(key, value)
        with self._pool.lock:
            before = self._pop(key)
            room = self._pool.admit(size)
            if room is not None:
                self._entries[key] = _Entry(value, size, next(self._pool.clock))
                self._count(size)
                if len(self._entries) > self._most:
                    room.append(self.evict())
        del before, room  # not under the lock: freeing large values takes time

    def clear(self) -> None:
        """Remove all entries."""
        with self._pool.lock:
            entries, self._entries = self._entries, OrderedDict()
            self._count(-self.bytes)
        del entries

    def _pop(self, key: K) -> object:
        found = self._entries.pop(key, None)
        if found is not None:
            self._count(-found.size)
        return found

    def _count(self, more: int) -> None:
        self.bytes += more
        self._pool.cached += more

    def oldest(self) -> int | None:
        """When the least recently used entry was used; call it under the pool's lock."""
        return next(iter(self._entries.values())).used if self._entries else None

    def evict(self) -> object:
        """Remove and return that entry; call it under the pool's lock."""
        _, found = self._entries.popitem(last=False)
        self._count(-found.size)
        return found


def memoize(use: Use, most: int, pool: Pool = POOL) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Cache the results of a function of positional arguments; results must not be None.

    It is like ``functools.lru_cache``, but counts bytes.
    """

    def decorate(function: Callable[P, V]) -> Callable[P, V]:
        known = Cache[Hashable, V](use, most, pool=pool)

        @wraps(function)
        def call(*given: P.args, **named: P.kwargs) -> V:
            found = known.get(given)
            if found is None:
                found = function(*given, **named)
                known.put(given, found)
            return found

        return call

    return decorate
