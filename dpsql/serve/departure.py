"""Finds out that a client has left while nothing is read from its connection."""

from __future__ import annotations

import asyncio
import select

LOOK_SECONDS = 1.0
"""Seconds between two looks while a statement of the client runs."""
_LEFT = (
    getattr(select, "POLLRDHUP", 0) | getattr(select, "POLLHUP", 0) | getattr(select, "POLLERR", 0)
)


def has_left(transport: asyncio.BaseTransport) -> bool:
    """Whether the client has closed its side; False if the system does not tell (only Linux does).

    An event loop notices that only while it reads. If a client has sent more than the server takes
    at a time, nothing is read, and its statements would go on and be charged though it has left.
    """
    sock = transport.get_extra_info("socket")
    if sock is None or not getattr(select, "POLLRDHUP", 0) or sock.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(sock.fileno(), _LEFT)
    return bool(poll.poll(0))
