"""The pool of memory that caches, held answers, prepared statements and messages share.

Memory that is held for a client is counted for as long as its ``Hold`` exists. Caches use the rest.
Before a hold is refused, the least recently used entries of caches are evicted.
"""

from __future__ import annotations

import enum
import itertools
import threading
from collections import Counter, deque
from collections.abc import Hashable, Mapping
from typing import Protocol
from weakref import WeakSet, WeakValueDictionary

MODEST = 1_000_000
"""The bytes that one login may hold, whatever others hold, as long as the reserve lasts."""


class Use(enum.Enum):
    """The uses of memory."""

    ANSWERS = "answers that are read"
    PREPARED = "prepared statements"
    PORTALS = "portals and their parameters"
    SESSIONS = "savepoints and settings of sessions"
    RECEIVED = "messages that are not carried out yet"
    UNSENT = "messages that clients have not read yet"
    READING = "statements that are being read"
    HTTP = "requests and answers over HTTP"
    CACHED_ANSWERS = "cache of answers"
    CACHED_CATALOG = "cache of catalog answers"
    CACHED_DESCRIPTIONS = "cache of descriptions of statements"
    CACHED_ROUTES = "cache of what statements read"
    CACHED_STATEMENTS = "cache of statements as they were read"
    CACHED_PLANS = "cache of plans"
    CACHED_RELEASES = "cache of recalled releases"
    CACHED_CHECKS = "cache of statements that were checked"
    CACHED_COUNTS = "cache of numbers of public groups"


class Full(Exception):
    """There is not enough memory left for a hold."""

    def __init__(self, use: Use, size: int) -> None:
        """The intended use, and the number of bytes."""
        self.use, self.size = use, size
        super().__init__(f"no memory is left for {use.value}")


class Evictable(Protocol):
    """A cache, as the pool sees it. Its methods are called under the pool's lock."""

    use: Use
    bytes: int

    def oldest(self) -> int | None:
        """When its least recently used entry was used; None if it is empty."""
        ...

    def evict(self) -> object:
        """Remove that entry, and return it."""
        ...


class Hold:
    """Bytes that are counted until the hold is released or garbage collected."""

    __slots__ = ("__weakref__", "_pool", "bytes", "of", "owner", "use")

    def __init__(self, pool: Pool, use: Use, owner: Hashable, of: object = None) -> None:
        """A hold of no bytes yet. It keeps ``of`` alive."""
        self._pool, self.use, self.owner, self.of, self.bytes = pool, use, owner, of, 0

    def resize(self, size: int) -> None:
        """Change the number of bytes. Raises ``Full`` if too few are left; nothing changes then."""
        self._pool.resize(self, size)

    def release(self) -> None:
        """Count no bytes any more."""
        self._pool.resize(self, 0)

    def __del__(self) -> None:
        """Have its bytes subtracted. Any thread may run this, even one that has the pool's lock."""
        if self.bytes:
            self._pool.dropped.append((self.use, self.owner, self.bytes))


class Pool:
    """A limited number of bytes. Safe to use from several threads.

    One owner (a login) holds at most half of them. An eighth is reserved for owners that hold at
    most ``MODEST`` bytes, so that large holds leave room for small ones.
    """

    def __init__(self, most: int) -> None:
        """An empty pool of ``most`` bytes."""
        self.most = most
        self.lock = threading.Lock()
        self.clock = itertools.count()
        self.dropped: deque[tuple[Use | None, Hashable, int]] = deque()
        """Bytes of holds, or (without a use) of caches, that are gone; appending needs no lock."""
        self.cached = 0
        """Bytes of all caches, which they change under the lock."""
        self._held: Counter[Use] = Counter()
        self._owned: Counter[Hashable] = Counter()
        self._total = 0
        self._lookups: dict[Use, list[int]] = {}
        self._caches: WeakSet[Evictable] = WeakSet()
        self._shared: WeakValueDictionary[int, Hold] = WeakValueDictionary()

    def hold(self, use: Use, size: int, owner: Hashable = None, of: object = None) -> Hold:
        """Count bytes for an owner. Raises ``Full`` if too few are left.

        The bytes ``of`` one object are counted once, however often it is held.
        """
        found = None if of is None else self._shared.get(id(of))
        if found is None or found.of is not of or not found.bytes:
            found = Hold(self, use, owner, of)
            if of is not None:
                self._shared[id(of)] = found
        found.resize(size)
        return found

    def resize(self, hold: Hold, size: int) -> None:
        """Change the number of bytes of a hold."""
        with self.lock:
            self._settle()
            more = size - hold.bytes
            if more > 0 and not self._fits(more, hold.owner):
                raise Full(hold.use, size)
            evicted = self._make_room(more)
            self._add(hold.use, hold.owner, more)
            hold.bytes = size
        del evicted  # not under the lock: freeing large values takes time

    def _fits(self, more: int, owner: Hashable) -> bool:
        """Whether this many more bytes may be held, if all caches are emptied."""
        whole = self._total + more
        if owner is None or (mine := self._owned[owner] + more) <= MODEST:
            return whole <= self.most
        return mine <= self.most // 2 and whole <= self.most - self.most // 8

    def _make_room(self, more: int) -> list[object]:
        """Evict the least recently used entries of all caches until this many bytes are free."""
        evicted = []
        while self._total + self.cached + more > self.most:
            ages = [(age, cache) for cache in self._caches if (age := cache.oldest()) is not None]
            if not ages:
                break
            evicted.append(min(ages, key=lambda pair: pair[0])[1].evict())
        return evicted

    def _add(self, use: Use, owner: Hashable, more: int) -> None:
        self._held[use] += more
        self._total += more
        if owner is not None:
            self._owned[owner] += more
            if not self._owned[owner]:
                del self._owned[owner]

    def _settle(self) -> None:
        """Subtract the bytes of objects that are gone."""
        while self.dropped:
            use, owner, size = self.dropped.popleft()
            if use is None:
                self.cached -= size
            else:
                self._add(use, owner, -size)

    def join(self, cache: Evictable) -> list[int]:
        """Count a cache as long as it exists; returns the counters of its hits and misses."""
        with self.lock:
            self._caches.add(cache)
            return self._lookups.setdefault(cache.use, [0, 0])

    def admit(self, size: int) -> list[object] | None:
        """Make room for a new entry of a cache, under the lock; None if it is too large.

        The evicted entries are returned, so that they can be freed without the lock.
        """
        self._settle()
        if size > self.most // 16 or self._total + size > self.most:
            return None
        return self._make_room(size)

    def limit(self, most: int) -> None:
        """Change the size of the pool. Caches shrink at once; holds stay until their release."""
        with self.lock:
            self.most = most
            self._settle()
            evicted = self._make_room(0)
        del evicted

    @property
    def held(self) -> int:
        """The bytes of all holds, without caches."""
        with self.lock:
            self._settle()
            return self._total

    def bytes_by_use(self) -> Mapping[str, int]:
        """The bytes of each use, by its name in lower case."""
        with self.lock:
            self._settle()
            found = Counter({use: self._held[use] for use in Use})
            for cache in self._caches:
                found[cache.use] += cache.bytes
        return {use.name.lower(): found[use] for use in Use}

    def lookups_by_cache(self) -> Mapping[str, tuple[int, int]]:
        """Hits and misses of each use that is a cache, by its name in lower case."""
        with self.lock:
            return {use.name.lower(): (n[0], n[1]) for use, n in self._lookups.items()}


USUAL = 250 * 10**6
"""Bytes of the pool if ``endpoint.memory`` is not given."""
POOL = Pool(USUAL)
"""The pool of this process; ``dpsql serve`` sets its size according to ``endpoint.memory``."""
