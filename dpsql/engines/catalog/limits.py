"""What a process may take of the machine: so much more memory than it has, no files, less of the processor."""

from __future__ import annotations

import contextlib
import mmap
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

_UNIT = 1 << 20
_STEPS = 24
"""Halvings of 2**44 bytes, more than a process can have, down to one unit."""
NICENESS = 5
"""Others go first. At 19 a machine that computes something else would let no catalog query through."""
EXCEEDED = 3
"""The exit status of a process that took too much where the system has no such limit."""


def give_way() -> None:
    """From here on, others go first."""
    with contextlib.suppress(OSError):
        os.nice(NICENESS)


def obey_parent() -> None:
    """Stop only when the parent does, not by a signal to all of a terminal or service; dump no memory."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def lift_limits() -> None:
    """As it was before ``limit_growth``; the parent's own content is about to be loaded."""
    for kind in (resource.RLIMIT_DATA, resource.RLIMIT_FSIZE):
        most = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most, most))


def limit_growth(growth: int) -> bool:
    """Let this process take ``growth`` bytes more than it has, and write no file.

    Claim: where this is true, the system refuses memory beyond them.
    Assumes: the system holds a process to ``RLIMIT_DATA``.
    Argument: how much the process has is found by trying: the least limit that leaves room for ``growth`` bytes
        is kept, and it was seen that a lower one refuses them.
    """
    _limit(resource.RLIMIT_FSIZE, 0)
    low, high = (
        mmap.PAGESIZE,
        1 << 44,
    )  # Linux takes a limit of 0 for none, for the sake of Valgrind
    _limit(resource.RLIMIT_DATA, low)
    if has_room(growth):
        return False
    for _ in range(_STEPS):
        middle = (low + high) // 2
        _limit(resource.RLIMIT_DATA, middle)
        low, high = (low, middle) if has_room(growth) else (middle, high)
    _limit(resource.RLIMIT_DATA, high)
    return True


def _limit(kind: int, size: int) -> None:
    most = resource.getrlimit(kind)[1]
    allowed = size if most == resource.RLIM_INFINITY else min(size, most)
    resource.setrlimit(kind, (allowed, most))


def has_room(size: int) -> bool:
    """Whether this process could have so many bytes more."""
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, ValueError):
        return False
    return True


def watch(growth: int, end: Callable[[int], object] = os._exit, pause: float = 0.01) -> None:
    """Where the system has no such limit: end this process soon after it has taken more."""
    most = peak() + growth

    def run() -> None:
        while peak() <= most:
            time.sleep(pause)
        end(EXCEEDED)

    threading.Thread(target=run, name="memory", daemon=True).start()


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found if sys.platform == "darwin" else found * 1024


def present() -> int:
    """The memory that this process has now where the system tells it, for gauges; otherwise its peak."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return peak()
    return pages * resource.getpagesize()
