"""Counts the bytes that wait for a client to read them."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from dpsql.memory.pool import POOL, Full, Hold, Use


class Unread:
    """Counts these bytes in the memory pool, for one connection."""

    def __init__(self) -> None:
        """No bytes wait, and nobody has logged in."""
        self._hold = Hold(POOL, Use.UNSENT, None)

    def charge(self, owner: Hashable) -> None:
        """Count the bytes for a login from now on."""
        self._hold.release()
        self._hold = Hold(POOL, Use.UNSENT, owner)

    def fits(self, transport: asyncio.WriteTransport, ready: object) -> bool:
        """Count the transport's bytes and those that are ready. False if there is no memory."""
        waiting = transport.get_write_buffer_size()
        try:
            self._hold.resize(waiting + (len(ready) if isinstance(ready, bytes) else 0))
        except Full:
            return False
        return True

    def release(self) -> None:
        """Count no bytes any more: the client has read them, or has left."""
        self._hold.release()
