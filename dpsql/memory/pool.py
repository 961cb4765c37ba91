"""The pool of memory that caches, held answers, prepared statements and messages share.

What is held for somebody is counted for as long as its ``Hold`` lives. Caches take what is left, and
give way: before something is refused, they forget what was not used for longest.
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
"""Bytes that one login may hold whatever others do, as long as the reserve lasts."""


class Use(enum.Enum):
    """What memory is used for."""

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
    """There is no memory left for what somebody wants to hold."""

    def __init__(self, use: Use, size: int) -> None:
        """What it was for, and how many bytes."""
        self.use, self.size = use, size
        super().__init__(f"no memory is left for {use.value}")


class Evictable(Protocol):
    """A cache, as the pool sees it. Its methods are called under the pool's lock."""

    use: Use
    bytes: int

    def oldest(self) -> int | None:
        """When its least recently used entry was used; None without entries."""
        ...

    def evict(self) -> object:
        """Forget that entry, and return it."""
        ...


class Hold:
    """Bytes that are counted until it is released, or nobody refers to it any more."""

    __slots__ = ("__weakref__", "_pool", "bytes", "of", "owner", "use")

    def __init__(self, pool: Pool, use: Use, owner: Hashable, of: object = None) -> None:
        """Nothing is counted yet. ``of`` is kept alive with it."""
        self._pool, self.use, self.owner, self.of, self.bytes = pool, use, owner, of, 0

    def resize(self, size: int) -> None:
        """Count so many bytes from here on; ``Full`` if there are too few, and then it is as before."""
        self._pool.resize(self, size)

    def release(self) -> None:
        """Count nothing any more."""
        self._pool.resize(self, 0)

    def __del__(self) -> None:
        """Have its bytes taken off. Any thread may come here, even one that has the pool's lock."""
        if self.bytes:
            self._pool.dropped.append((self.use, self.owner, self.bytes))


class Pool:
    """So many bytes. Safe to use from several threads.

    One owner (a login) holds at most half of them. An eighth is reserved for owners that hold at most
    ``MODEST`` bytes, so that large holds leave room for small ones.
    """

    def __init__(self, most: int) -> None:
        """All of it is free."""
        self.most = most
        self.lock = threading.Lock()
        self.clock = itertools.count()
        self.dropped: deque[tuple[Use | None, Hashable, int]] = deque()
        """What was held, or (without a use) cached, by objects that are gone; appending needs no lock."""
        self.cached = 0
        """Bytes of all caches; they change it under the lock."""
        self._held: Counter[Use] = Counter()
        self._owned: Counter[Hashable] = Counter()
        self._total = 0
        self._lookups: dict[Use, list[int]] = {}
        self._caches: WeakSet[Evictable] = WeakSet()
        self._shared: WeakValueDictionary[int, Hold] = WeakValueDictionary()

    def hold(self, use: Use, size: int, owner: Hashable = None, of: object = None) -> Hold:
        """Count so many bytes for an owner; ``Full`` if there are too few.

        What is held ``of`` one object is counted once, however often it is held.
        """
        found = None if of is None else self._shared.get(id(of))
        if found is None or found.of is not of or not found.bytes:
            found = Hold(self, use, owner, of)
            if of is not None:
                self._shared[id(of)] = found
        found.resize(size)
        return found

    def resize(self, hold: Hold, size: int) -> None:
        """Change what a hold counts."""
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
        """Whether so many bytes more may be held, with all caches given up."""
        whole = self._total + more
        if owner is None or (mine := self._owned[owner] + more) <= MODEST:
            return whole <= self.most
        return mine <= self.most // 2 and whole <= self.most - self.most // 8

    def _make_room(self, more: int) -> list[object]:
        """Forget what was used least recently, of all caches, until so much is free."""
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
        """Take off what was dropped since."""
        while self.dropped:
            use, owner, size = self.dropped.popleft()
            if use is None:
                self.cached -= size
            else:
                self._add(use, owner, -size)

    def join(self, cache: Evictable) -> list[int]:
        """Count this cache from here on, as long as it lives; where to count its hits and misses."""
        with self.lock:
            self._caches.add(cache)
            return self._lookups.setdefault(cache.use, [0, 0])

    def admit(self, size: int) -> list[object] | None:
        """Room for a cache's new entry, under the lock; None where it is too large for one.

        What had to be forgotten for it is returned, to be dropped without the lock.
        """
        self._settle()
        if size > self.most // 16 or self._total + size > self.most:
            return None
        return self._make_room(size)

    def limit(self, most: int) -> None:
        """Another size from here on; caches shrink at once, what is held as it is released."""
        with self.lock:
            self.most = most
            self._settle()
            evicted = self._make_room(0)
        del evicted

    @property
    def held(self) -> int:
        """Bytes that are held, without caches."""
        with self.lock:
            self._settle()
            return self._total

    def bytes_by_use(self) -> Mapping[str, int]:
        """Bytes of each use, by its name in small letters."""
        with self.lock:
            self._settle()
            found = Counter({use: self._held[use] for use in Use})
            for cache in self._caches:
                found[cache.use] += cache.bytes
        return {use.name.lower(): found[use] for use in Use}

    def lookups_by_cache(self) -> Mapping[str, tuple[int, int]]:
        """Hits and misses of each use that is a cache, by its name in small letters."""
        with self.lock:
            return {use.name.lower(): (n[0], n[1]) for use, n in self._lookups.items()}


USUAL = 250 * 10**6
"""Bytes of the pool where ``endpoint.memory`` is not written."""
POOL = Pool(USUAL)
"""Of this process; ``dpsql serve`` gives it the size that ``endpoint.memory`` leaves for it."""
