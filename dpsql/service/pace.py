"""Holds answers back until a multiple of a fixed time, so that run times are seen only coarsely.

Claim: Under ``fixed`` an answer leaves at the first multiple, whatever the engine does until then.
    All engine statements of a question share this time, and an engine that takes longer is stopped
    at the multiple. Under ``quantum`` a client learns the number of multiples that the question
    took, and no more. A client that interrupts learns no more than that (see ``execution``).
    Neither does a client that reads the ledger, or asks for stored answers, in another session:
    a measurement is noted in the ledger at a multiple, and not before.
Assumes: the steps after the multiple (post-processing, sending) depend on released values only.
Argument: a measurement waits for the multiple before it is noted, and so does an error. Under
    ``fixed`` the deadline of the statement is the first multiple, and engines are stopped at the
    deadline (``execution``).
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
    """Holds back an answer or an error that is ready until it may leave."""

    def __init__(
        self, latency: Latency | None, watch: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = rest,
    ) -> None:  # fmt: skip
        """If ``latency`` is None, everything leaves at once."""
        self._latency, self._watch, self._sleep = latency, watch, sleep

    @contextmanager
    def kept(self) -> Iterator[Wait]:
        """Wait once, until a multiple of the policy's time has passed since the block was entered.

        The block gets a function that waits. If the block does not call it, the wait is at the end
        of the block. After the wait, nothing in the block may depend on private values.
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
