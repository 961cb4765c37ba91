"""When answers leave: at multiples of a time, so that how long a query ran is told coarsely.

Claim: under ``fixed``, an answer leaves at the first multiple for whatever the engine does within
    it, all statements of a question together, and an engine that takes longer is stopped then.
    Under ``quantum`` what is told is the
    number of multiples that it took.
Assumes: what follows the engine (noise, post-processing, sending) depends on released values.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpsql.policy.model import Latency


class Pace:
    """Holds back what is ready, an answer or an error, until it may leave."""

    def __init__(
        self, latency: Latency | None, watch: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        """No latency: everything leaves at once."""
        self._latency, self._watch, self._sleep = latency, watch, sleep

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Leave the block at a multiple of the policy's time after it was entered."""
        begun = self._watch()
        try:
            yield
        finally:
            if self._latency is not None:
                step, took = self._latency.seconds, self._watch() - begun
                self._sleep(max(0.0, math.ceil(took / step) * step - took))
