"""Splits received bytes into whole messages, within limits. It does not interpret the messages."""

from __future__ import annotations

import struct
from collections.abc import Hashable

from dpsql.memory.pool import POOL, Full, Hold, Use
from dpsql.serve.pgwire.errors import PROTOCOL, Fatal, no_memory

LARGEST_BEFORE_LOGIN = 10_000
LARGEST_MESSAGE = 16 << 20
FEW, ENOUGH = 1 << 16, 1 << 18
"""The bytes from which the buffer is counted, and those from which no more is read ahead."""
_LENGTH = struct.Struct("!i")


class Frames:
    """The buffer of received bytes. If they are many, they are counted in the memory pool."""

    def __init__(self) -> None:
        """The buffer is empty. ``largest`` bounds each message, and grows with the log-in."""
        self._buffer = bytearray()
        self._read = 0
        self.largest = LARGEST_BEFORE_LOGIN
        self._hold = Hold(POOL, Use.RECEIVED, None)

    def admit(self, largest: int, owner: Hashable) -> None:
        """After a log-in, allow longer messages, and count their memory for the login."""
        self._hold.release()
        self.largest, self._hold = largest, Hold(POOL, Use.RECEIVED, owner)

    def feed(self, data: bytes) -> None:
        """Add bytes that arrived. Ends the connection if there is no memory for them."""
        if self._read > FEW:
            del self._buffer[: self._read]
            self._read = 0
        if len(self._buffer) + len(data) > FEW:
            self._count(len(self._buffer) + len(data))
        self._buffer += data

    def _count(self, size: int) -> None:
        try:
            self._hold.resize(size)
        except Full as error:
            told = no_memory(error, "Send shorter messages, or try again later.")
            raise Fatal(told.sqlstate, told.message, told.detail, told.hint) from None

    def drop(self) -> None:
        """Drop the buffer, and give its memory back."""
        self._buffer, self._read = bytearray(), 0
        if self._hold.bytes:
            self._hold.release()

    @property
    def hungry(self) -> bool:
        """Whether more should be received: few bytes wait, or the next message is not whole."""
        if self.waiting < ENOUGH:
            return True
        (length,) = _LENGTH.unpack_from(self._buffer, self._read + 1)
        return bool(self.waiting < min(length, self.largest) + 1)

    @property
    def waiting(self) -> int:
        """The number of bytes that wait to be read."""
        return len(self._buffer) - self._read

    def startup(self) -> bytes | None:
        """The next message of the start-up phase, which has no type; None until it is whole."""
        return self._whole(0, 8)

    def message(self) -> tuple[int, bytes] | None:
        """The type and body of the next message; None until it is whole."""
        if self.waiting < 5:
            return None
        kind = self._buffer[self._read]
        body = self._whole(1, 4)
        return None if body is None else (kind, body)

    def _whole(self, skipped: int, least: int) -> bytes | None:
        if self.waiting < skipped + 4:
            return None
        start = self._read + skipped
        (length,) = _LENGTH.unpack_from(self._buffer, start)
        if not least <= length <= self.largest:
            raise Fatal(PROTOCOL, "invalid length of a message")
        if len(self._buffer) < start + length:
            return None
        with memoryview(self._buffer) as view:
            found = bytes(view[start + 4 : start + length])
        self._read = start + length
        if self._read == len(self._buffer):
            self.drop()
        return found
