"""Memory that nobody uses any more goes back to the system, whatever has used it.

Allocators keep what is freed, for later. A process that has answered something large once would stay
large, beside others that need the memory. How much it has is looked at every few seconds.
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
"""Seconds after which it is looked at again."""
STEP = 16_000_000
"""Bytes beyond the least that the process has had: so much is worth the work."""
LONGEST = 16
"""So many pauses at most after memory was given back in vain, as it is used."""


def give_back() -> None:
    """What allocators keep of what is gone goes back to the system, where they can."""
    gc.collect()  # statements that were read refer to themselves
    allocator.give_back()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Upkeep:
    """Looks after the memory of the process until it is closed."""

    def __init__(
        self, size: Callable[[], float] = resident, give_back: Callable[[], None] = give_back
    ) -> None:
        """``size`` says how many bytes the process has; an ``OSError`` where the system does not tell."""
        self._size, self._give_back = size, give_back
        self._least = math.inf
        self._wait, self._pauses = 0, 1
        self._closed = threading.Event()

    def start(self) -> None:
        """From here on, in a thread of its own; what is there already stays."""
        gc.collect()
        gc.freeze()  # it is not looked through again each time
        threading.Thread(target=self._run, name="dpsql-upkeep", daemon=True).start()

    def close(self) -> None:
        """The thread ends."""
        self._closed.set()

    def look(self) -> None:
        """Give memory back if there is more than there need be; more seldom while that is in vain."""
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
