"""Processes for catalog queries without their protections, and the effects that statements have."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dpsql.engines.catalog.pool import Workers
from dpsql.engines.catalog.process import Process

MAIN = "\nfrom dpsql.engines.catalog.worker import main\nmain()\n"


def started(growth: int, first: str) -> Process:
    """A process that does something else before it begins."""
    return Process(growth, (sys.executable, "-P", "-s", "-c", first + MAIN))


@contextmanager
def workers(first: str = "", *, most: int = 2, growth: int = 123_000_000) -> Iterator[Workers]:
    """A pool of its own for one test, of processes that do something else before they begin."""
    pool = Workers(most, growth, start=lambda growth: started(growth, first))
    try:
        yield pool
    finally:
        pool.close()


class RecordedEffects:
    """Carries out nothing; notes what statements stop and set."""

    def __init__(self) -> None:
        self.stopped, self.kept = set[int](), set[str]()

    def stop(self, process: int, *, ends: bool) -> bool:
        """Note the process."""
        self.stopped.add(process)
        return ends

    def set(self, name: str, value: str, *, local: bool) -> str:
        """Note the value."""
        self.kept.add(value)
        return f"{name} {local}"
