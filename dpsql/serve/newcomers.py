"""Connections whose clients have not proved who they are: so many in all, and so many of one address.

They take no place from those who have logged in. Where there are too many, one of them gives way to
the next that comes: one that has said nothing before one that has begun to log in, the oldest
first, of the address that has the most. So silence keeps nobody out.
"""

from __future__ import annotations

import ipaddress
from typing import Protocol


class Newcomer(Protocol):
    """A connection that can be closed at once."""

    def give_way(self) -> None:
        """Close at once; the place is needed."""
        ...


class Newcomers:
    """Who has connected and not logged in. Only for the event loop's own thread."""

    def __init__(self, most: int, most_of_address: int) -> None:
        """Nobody is there."""
        self.most, self.most_of_address = most, most_of_address
        self.displaced = 0
        """How many had to give way so far."""
        self._address: dict[Newcomer, str] = {}
        self._silent: dict[str, dict[Newcomer, None]] = {}
        self._begun: dict[str, dict[Newcomer, None]] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._address)

    def add(self, who: Newcomer, peer: object, *, begun: bool = False) -> None:
        """Take in a connection from a socket's address; another one gives way where need be."""
        address = origin(peer)
        crowded = len(self._of(address)) >= self.most_of_address
        if crowded or len(self) >= self.most:
            self._displace(address if crowded else self._largest())
        self._address[who] = address
        (self._begun if begun else self._silent).setdefault(address, {})[who] = None

    def begin(self, who: Newcomer) -> None:
        """It has said who it wants to be: it gives way after those that say nothing."""
        address = self._address.get(who)
        if address is not None and who in self._silent.get(address, ()):
            self._drop(self._silent, address, who)
            self._begun.setdefault(address, {})[who] = None

    def discard(self, who: Newcomer) -> None:
        """It has logged in, or is gone."""
        address = self._address.pop(who, None)
        if address is not None:
            self._drop(self._silent, address, who)
            self._drop(self._begun, address, who)

    def _displace(self, address: str) -> None:
        first = next(iter(self._of(address)))
        self.displaced += 1
        self.discard(first)
        first.give_way()

    def _of(self, address: str) -> list[Newcomer]:
        """Those of an address, in the order in which they give way."""
        return [*self._silent.get(address, ()), *self._begun.get(address, ())]

    def _largest(self) -> str:
        """The address that has the most; of several, the one of which somebody is silent."""
        addresses = dict.fromkeys(self._address.values())
        return max(addresses, key=lambda a: (len(self._of(a)), len(self._silent.get(a, ()))))

    @staticmethod
    def _drop(kind: dict[str, dict[Newcomer, None]], address: str, who: Newcomer) -> None:
        there = kind.get(address, {})
        there.pop(who, None)
        if not there:
            kind.pop(address, None)


def origin(peer: object) -> str:
    """What counts as one address: of IPv6 a whole network of 64 bits, which one subscriber has.

    >>> origin(("192.0.2.7", 50000)), origin(("2001:db8:1:2:3:4:5:6", 50000, 0, 0))
    ('192.0.2.7', '2001:db8:1:2::')
    >>> origin(("::ffff:192.0.2.7", 50000, 0, 0)), origin(None)
    ('192.0.2.7', '')
    """
    host = str(peer[0]) if isinstance(peer, tuple) and peer else ""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(found) >> 64 << 64))
