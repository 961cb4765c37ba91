"""When answers leave: at multiples of a time, so that how long a query ran is told coarsely.

Claim: under ``fixed``, an answer leaves at the first multiple for whatever the engine does within
    it, all statements of a question together, and an engine that takes longer is stopped then.
    Under ``quantum`` what is told is the
    number of multiples that it took. A client that interrupts learns no more: see ``execution``.
    Nor does one that looks at the ledger from elsewhere, or asks there what is stored: what was
    measured is noted in the ledger at a multiple, and not before.
Assumes: what follows that (post-processing, sending) depends on released values.
Argument: what was measured waits for the multiple before it is noted, and so does an error; under ``fixed`` the
    deadline of the statement is the first multiple, and engines are stopped then (``execution``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpsql.execution import rest
from dpsql.policy.model import Latency

Wait = Callable[[], None]


class Pace:
    """Holds back what is ready, an answer or an error, until it may leave."""

    def __init__(
        self, latency: Latency | None, watch: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = rest,
    ) -> None:  # fmt: skip
        """No latency: everything leaves at once."""
        self._latency, self._watch, self._sleep = latency, watch, sleep

    @contextmanager
    def kept(self) -> Iterator[Wait]:
        """Wait for a multiple of the policy's time after the block was entered, in it or at its end.

        What it gives waits for that, once: what follows depends on nothing that is private.
        """
        begun, waits = self._watch(), self._latency is not None

        def wait() -> None:
            nonlocal waits
            if self._latency is not None and waits:
                waits = False
                step, took = self._latency.seconds, self._watch() - begun
                self._sleep(max(0.0, math.ceil(took / step) * step - took))

        try:
            yield wait
        finally:
            wait()
