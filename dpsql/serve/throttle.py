"""Delays of log-ins after failed ones.

The longest of three delays holds. The failures of one name from one address double a delay up to
``PAIR.most`` seconds. The failures of a name from all addresses, and of an address under all names,
give delays of one second at most. So guessing from one place is slow, and guessing from many places
or under many names is slower than without. But nobody can keep the owner of a name out who logs in
from elsewhere, or other names out that share an address.

The delay comes before a try is looked at, and is the same for the right password and a wrong one,
and for names that exist and names that do not. So a client that gives up early learns nothing. At
most ``WAITING`` tries of one pair wait at the same time; more are refused, and not looked at. A client
that leaves keeps its place until its delay is over, so leaving gains nothing either.

Tokens have no names, and are too random to be guessed at any speed. So only the answer to a wrong
token is delayed, by the failures of its address, or refused at once if as many wait. A right token
never waits for what others at its address do.

What is remembered is bounded: each table forgets what failed longest ago. There is no I/O here, and
nothing waits here.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from dpsql.diagnostics.operation.events import LoginFailed, record
from dpsql.serve.newcomers import origin

WAITING = 20
"""So many tries of one pair wait at the same time."""
ENTRIES = 8_192
"""So many pairs, names and addresses are remembered, of each kind."""


class Growth(NamedTuple):
    """A delay that begins with ``first`` seconds, doubles with each failure, and ends at ``most``.

    Failures count no more when no other followed for ``forgotten`` seconds.
    """

    first: float
    most: float
    forgotten: float

    def after(self, failures: int) -> float:
        """The delay after so many failures in a row."""
        return min(self.most, self.first * 2 ** min(failures - 1, 30)) if failures else 0.0


PAIR = Growth(0.3, 10.0, 900.0)
NAME = ADDRESS = Growth(0.02, 1.0, 60.0)


class TooMany(Exception):
    """The most tries of a pair wait already; the first of them ends in ``seconds``."""

    def __init__(self, seconds: float) -> None:
        """Hold how long to stay away."""
        self.seconds = seconds
        super().__init__("too many log-ins wait")


@dataclass(slots=True)
class _Entry:
    failures: int = 0
    last: float = 0.0
    ends: list[float] = field(default_factory=list)
    """When each try that waits is looked at."""


class _Table:
    """Entries by key, those that failed last at the end."""

    def __init__(self, growth: Growth) -> None:
        self._growth, self._entries = growth, OrderedDict[bytes, _Entry]()

    def find(self, key: bytes, now: float) -> _Entry | None:
        found = self._entries.get(key)
        if found is not None and now - found.last > self._growth.forgotten:
            del self._entries[key]
            return None
        return found

    def failures(self, key: bytes, now: float) -> int:
        found = self.find(key, now)
        return 0 if found is None else found.failures

    def delay(self, key: bytes, now: float) -> float:
        return self._growth.after(self.failures(key, now))

    def fail(self, key: bytes, now: float) -> None:
        entry = self.find(key, now) or _Entry()
        entry.failures, entry.last = entry.failures + 1, now
        self._entries[key] = entry
        self._entries.move_to_end(key)
        if len(self._entries) > ENTRIES:
            self._entries.popitem(last=False)

    def forget(self, key: bytes) -> None:
        self._entries.pop(key, None)

    def __len__(self) -> int:
        return len(self._entries)


class Throttle:
    """The failed log-ins of one endpoint, on all its faces. It is asked in the event loop alone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` gives seconds, and is never set back."""
        self.clock = clock
        self.pairs, self.names, self.addresses = _Table(PAIR), _Table(NAME), _Table(ADDRESS)

    def attempt(self, peer: object, name: str) -> Attempt:
        """A log-in that begins, over a socket whose other end is ``peer``."""
        return Attempt(self, peer, name)

    @property
    def entries(self) -> int:
        """How much is remembered."""
        return sum(map(len, (self.pairs, self.names, self.addresses)))


class Attempt:
    """One log-in from an address: under a name, or (the name is empty) with a token."""

    def __init__(self, throttle: Throttle, peer: object, name: str) -> None:
        """Nothing was tried yet."""
        self._throttle, self._name = throttle, name
        self._address = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        from_there = _key(origin(peer))
        self._counted: list[tuple[_Table, bytes]] = [(throttle.addresses, from_there)]
        if name:
            by_name = _key(name)
            pair = (throttle.pairs, from_there + by_name)
            self._counted = [pair, (throttle.names, by_name), *self._counted]

    @property
    def delay(self) -> float:
        """Seconds that a try which begins now is to wait."""
        now = self._throttle.clock()
        return max(table.delay(key, now) for table, key in self._counted)

    def queue(self) -> float:
        """The same, with a place among those that wait; ``TooMany`` if there is none."""
        seconds, now = self.delay, self._throttle.clock()
        table, key = self._counted[0]
        entry = table.find(key, now)
        if entry is not None:
            entry.ends = [end for end in entry.ends if end > now]
            if len(entry.ends) >= WAITING:
                raise TooMany(min(entry.ends) - now)
            entry.ends.append(now + seconds)
        return seconds

    @property
    def failures(self) -> int:
        """How often it has failed already, under this name from this address."""
        table, key = self._counted[0]
        return table.failures(key, self._throttle.clock())

    def fail(self, database: str = "") -> None:
        """It was the wrong password or token, or there is no such name."""
        now = self._throttle.clock()
        for table, key in self._counted:
            table.fail(key, now)
        record(
            LoginFailed(self._name, self._address, "postgres" if self._name else "http", database)
        )

    def succeed(self) -> None:
        """The pair begins anew. Name and address do not: others may be at it."""
        table, key = self._counted[0]
        table.forget(key)


def _key(text: str) -> bytes:
    """Of one length, whatever a client calls itself."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
