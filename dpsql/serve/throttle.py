"""Computes the delays of log-ins after failed ones.

A log-in has the longest of three delays. Each failure of one name from one address (a pair) doubles
a delay of up to ``PAIR.most`` seconds. The failures of a name from all addresses, and those of an
address under all names, give delays of one second at most. So guessing from one place is slow, and
guessing from many places or under many names is slowed down too. But nobody can keep out the owner
of a name who logs in from another address, or other names that share an address.

The delay comes before the password is checked. It is the same for a right password and a wrong one,
and for names that exist and names that do not. So a client that gives up early learns nothing. At
most ``WAITING`` tries of one pair wait at the same time; more are refused without a check. A client
that leaves keeps its place until its delay is over, so leaving gains nothing either.

Tokens have no names, and are too random to be guessed at any speed. So only the answer to a wrong
token is delayed, by the failures of its address. It is refused at once if ``WAITING`` of them wait.
A right token is never delayed by failures of others at its address.

The memory is bounded: each table forgets the entries whose last failure is the oldest. This module
does no I/O and waits for nothing.
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
"""The most tries of one pair that wait at the same time."""
ENTRIES = 8_192
"""The most entries that each of the three tables (pairs, names, addresses) holds."""


class Growth(NamedTuple):
    """A delay that begins with ``first`` seconds and doubles with each failure, up to ``most``.

    Failures are forgotten if no other one follows for ``forgotten`` seconds.
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
    """As many tries of a pair wait as may; the first of them ends in ``seconds``."""

    def __init__(self, seconds: float) -> None:
        """``seconds`` is the time after which the client may try again."""
        self.seconds = seconds
        super().__init__("too many log-ins wait")


@dataclass(slots=True)
class _Entry:
    failures: int = 0
    last: float = 0.0
    ends: list[float] = field(default_factory=list)
    """The times at which the delays of the waiting tries end."""


class _Table:
    """Entries by key, ordered by the time of their last failure."""

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
    """The failed log-ins of one endpoint, on all its faces. Used only in the event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` gives seconds, and is monotonic."""
        self.clock = clock
        self.pairs, self.names, self.addresses = _Table(PAIR), _Table(NAME), _Table(ADDRESS)

    def attempt(self, peer: object, name: str) -> Attempt:
        """The record of a log-in that begins, over a socket whose other end is ``peer``."""
        return Attempt(self, peer, name)

    @property
    def entries(self) -> int:
        """The number of entries in all tables."""
        return sum(map(len, (self.pairs, self.names, self.addresses)))


class Attempt:
    """One log-in from an address, under a name or, if the name is empty, with a token."""

    def __init__(self, throttle: Throttle, peer: object, name: str) -> None:
        """``Throttle.attempt`` makes it."""
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
        """The seconds for which a try that begins now must wait."""
        now = self._throttle.clock()
        return max(table.delay(key, now) for table, key in self._counted)

    def queue(self) -> float:
        """Take a place among the tries that wait, and return the delay. Raises ``TooMany``."""
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
        """The number of earlier failures under this name from this address."""
        table, key = self._counted[0]
        return table.failures(key, self._throttle.clock())

    def fail(self, database: str = "") -> None:
        """Note that the password or token was wrong, or that there is no such name."""
        now = self._throttle.clock()
        for table, key in self._counted:
            table.fail(key, now)
        record(
            LoginFailed(self._name, self._address, "postgres" if self._name else "http", database)
        )

    def succeed(self) -> None:
        """Forget the failures of the pair.

        Those of the name and of the address stay, since others may be guessing there.
        """
        table, key = self._counted[0]
        table.forget(key)


def _key(text: str) -> bytes:
    """A key of fixed length, however long the name of a client is."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
