"""Waits of tests for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], seconds: float = 30, pause: float = 0.01) -> bool:
    """Whether the condition holds within so long; asked again and again."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(pause)
    return condition()
