"""Limits the connections that have not logged in yet, in all and for each address.

They take no place from those who have logged in. If there are too many, a new one displaces one of
them: of the address that has the most, a silent one before one that has begun to log in, and the
oldest first. So clients that connect and stay silent keep nobody out.
"""

from __future__ import annotations

import ipaddress
from typing import Protocol


class Newcomer(Protocol):
    """A connection that can be closed at once."""

    def give_way(self) -> None:
        """Close at once, since another connection needs the place."""
        ...


class Newcomers:
    """The connections that have not logged in. Used only in the thread of the event loop."""

    def __init__(self, most: int, most_of_address: int) -> None:
        """There are none at first."""
        self.most, self.most_of_address = most, most_of_address
        self.displaced = 0
        """The number of connections that were displaced so far."""
        self._address: dict[Newcomer, str] = {}
        self._silent: dict[str, dict[Newcomer, None]] = {}
        self._begun: dict[str, dict[Newcomer, None]] = {}

    def __len__(self) -> int:
        """The number of connections."""
        return len(self._address)

    def add(self, who: Newcomer, peer: object, *, begun: bool = False) -> None:
        """Add a connection from a socket's address. If there are too many, displace another one."""
        address = origin(peer)
        crowded = len(self._of(address)) >= self.most_of_address
        if crowded or len(self) >= self.most:
            self._displace(address if crowded else self._largest())
        self._address[who] = address
        (self._begun if begun else self._silent).setdefault(address, {})[who] = None

    def begin(self, who: Newcomer) -> None:
        """Note that a connection has begun to log in. Silent ones are displaced before it."""
        address = self._address.get(who)
        if address is not None and who in self._silent.get(address, ()):
            self._drop(self._silent, address, who)
            self._begun.setdefault(address, {})[who] = None

    def discard(self, who: Newcomer) -> None:
        """Remove a connection that has logged in or is closed."""
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
        """The connections of an address, in the order in which they are displaced."""
        return [*self._silent.get(address, ()), *self._begun.get(address, ())]

    def _largest(self) -> str:
        """The address with the most connections; among equals, with the most silent ones."""
        addresses = dict.fromkeys(self._address.values())
        return max(addresses, key=lambda a: (len(self._of(a)), len(self._silent.get(a, ()))))

    @staticmethod
    def _drop(kind: dict[str, dict[Newcomer, None]], address: str, who: Newcomer) -> None:
        there = kind.get(address, {})
        there.pop(who, None)
        if not there:
            kind.pop(address, None)


def origin(peer: object) -> str:
    """The address for the limits: for IPv6 the /64 network, since one subscriber has all of it.

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
