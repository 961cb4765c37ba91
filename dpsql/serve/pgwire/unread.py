"""What was sent to a client, or is ready for it, and that it has not read."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from dpsql.memory.pool import POOL, Full, Hold, Use


class Unread:
    """Counts it in the pool, for one connection."""

    def __init__(self) -> None:
        """Nothing waits, and nobody has logged in."""
        self._hold = Hold(POOL, Use.UNSENT, None)

    def charge(self, owner: Hashable) -> None:
        """Somebody has logged in, whose memory it is from here on."""
        self._hold.release()
        self._hold = Hold(POOL, Use.UNSENT, owner)

    def fits(self, transport: asyncio.WriteTransport, ready: object) -> bool:
        """Count what the transport has and what is ready behind it; False if there is no memory."""
        waiting = transport.get_write_buffer_size()
        try:
            self._hold.resize(waiting + (len(ready) if isinstance(ready, bytes) else 0))
        except Full:
            return False
        return True

    def release(self) -> None:
        """The client has read it, or is gone."""
        self._hold.release()
