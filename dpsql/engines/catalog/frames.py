"""Messages between ``dpsql serve`` and a process that answers catalog queries, over a socket.

A message is a JSON object and bytes. Only the parent sends pickles. It accepts nothing from a
process but JSON of a bounded length, and Arrow.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

_HEAD = struct.Struct("!IQ")
LONGEST_HEAD = 1_000_000
"""The most bytes of JSON in a message: the names and types of the columns of one answer."""
SLICE = 0.1
"""Seconds between two checks of the parent whether to go on waiting."""


class Closed(Exception):
    """Raised if the other end is gone, or sends what this end does not understand."""


class Channel:
    """One end of the socket. Several threads may send; one receives."""

    def __init__(self, end: socket.socket, wait: Callable[[], None] | None = None) -> None:
        """``wait`` is called repeatedly, also while data arrives, and may raise."""
        self._socket, self._sending = end, threading.Lock()
        self.wait, self._next_look = wait, 0.0
        end.settimeout(None if wait is None else SLICE)

    def send(self, head: dict[str, Any], body: bytes | bytearray = b"") -> None:
        """Send one whole message."""
        said = json.dumps(head).encode()
        with self._sending:
            self._drain(memoryview(_HEAD.pack(len(said), len(body)) + said))
            self._drain(memoryview(body))

    def receive(self, largest: int) -> tuple[dict[str, Any], bytes]:
        """The next message. A message that is larger than ``largest`` closes the channel."""
        said, size = _HEAD.unpack(self._fill(_HEAD.size))
        if said > LONGEST_HEAD or size > largest:
            raise Closed
        try:
            head = json.loads(self._fill(said))
        except (ValueError, RecursionError):
            raise Closed from None
        if not isinstance(head, dict):
            raise Closed
        return head, self._fill(size)

    def close(self) -> None:
        """Close this end. The other end reads the end of its stream."""
        self._socket.close()

    def _fill(self, size: int) -> bytes:
        found = bytearray(size)
        left = memoryview(found)
        while left:
            count = self._patiently(lambda room=left: self._socket.recv_into(room))  # type: ignore[misc]
            if not count:
                raise Closed
            left = left[count:]
        return bytes(found)

    def _drain(self, left: memoryview) -> None:
        while left:
            left = left[self._patiently(lambda rest=left: self._socket.send(rest)) :]  # type: ignore[misc]

    def _patiently(self, step: Callable[[], int]) -> int:
        while True:
            now = time.monotonic()
            if self.wait is not None and now >= self._next_look:
                self._next_look = now + SLICE
                self.wait()
            try:
                return step()
            except TimeoutError:
                continue
            except OSError:
                raise Closed from None
