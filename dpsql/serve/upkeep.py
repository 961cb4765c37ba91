"""Returns freed memory to the system.

Allocators keep freed memory for later use. So a process that has answered something large once
would stay large, although other processes may need the memory. A thread looks at the size of the
process every few seconds.
"""

from __future__ import annotations

import ctypes
import gc
import math
import threading
from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa

from dpsql.diagnostics.operation.footprint import resident
from dpsql.engines.duckdb import allocator

PAUSE = 2.0
"""Seconds between two looks."""
STEP = 16_000_000
"""Bytes by which the process must exceed its smallest size so far before memory is returned."""
LONGEST = 16
"""The most pauses between two tries, after tries that returned little since memory is in use."""


def give_back() -> None:
    """Make the allocators return their freed memory to the system, as far as they can."""
    gc.collect()  # parsed statements have reference cycles
    allocator.give_back()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Upkeep:
    """Returns freed memory of the process from time to time, until it is closed."""

    def __init__(
        self, size: Callable[[], float] = resident, give_back: Callable[[], None] = give_back
    ) -> None:
        """``size`` returns the bytes of the process; ``OSError`` if the system does not tell."""
        self._size, self._give_back = size, give_back
        self._least = math.inf
        self._wait, self._pauses = 0, 1
        self._closed = threading.Event()

    def start(self) -> None:
        """Start the thread. Objects that exist already are left out of later collections."""
        gc.collect()
        gc.freeze()  # so that each collection has less to look through
        threading.Thread(target=self._run, name="dpsql-upkeep", daemon=True).start()

    def close(self) -> None:
        """End the thread."""
        self._closed.set()

    def look(self) -> None:
        """Return memory if the process is larger than it needs to be.

        The pauses double, up to ``LONGEST``, as long as a try returns less than ``STEP`` bytes.
        """
        before = self._size()
        self._least = min(self._least, before)
        if before < self._least + STEP:
            self._wait, self._pauses = 0, 1
        elif self._wait:
            self._wait -= 1
        else:
            self._give_back()
            after = self._size()
            self._least = min(self._least, after)
            self._pauses = min(2 * self._pauses, LONGEST) if before - after < STEP else 1
            self._wait = self._pauses - 1

    def _run(self) -> None:
        with suppress(OSError):
            while not self._closed.wait(PAUSE):
                self.look()
