"""Bytes to whole messages, with limits. Nothing here knows what a message means."""

from __future__ import annotations

import struct

from dpsql.serve.pgwire.errors import PROTOCOL, Fatal

LARGEST_BEFORE_LOGIN = 10_000
LARGEST_MESSAGE = 16 << 20
_LENGTH = struct.Struct("!i")


class Frames:
    """Bytes received and not yet read."""

    def __init__(self) -> None:
        """Empty; ``largest`` bounds each message, and grows with the log-in."""
        self._buffer = bytearray()
        self._read = 0
        self.largest = LARGEST_BEFORE_LOGIN

    def feed(self, data: bytes) -> None:
        """Add what arrived."""
        if self._read > 1 << 16 or self._read == len(self._buffer):
            del self._buffer[: self._read]
            self._read = 0
        self._buffer += data

    @property
    def waiting(self) -> int:
        """How many bytes are there."""
        return len(self._buffer) - self._read

    def startup(self) -> bytes | None:
        """A message of the start-up phase, which has a length and no type; None until it is whole."""
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
        self._read = start + length
        return bytes(self._buffer[start + 4 : start + length])
