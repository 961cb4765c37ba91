"""The limits of a process on the machine: a growth of its memory, no files, a lower priority."""

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
"""Other processes go first. At a niceness of 19 a busy machine would run no catalog query."""
EXCEEDED = 3
"""The exit status of a process that took too much memory where the system has no such limit."""


def give_way() -> None:
    """Lower the priority of this process from here on."""
    with contextlib.suppress(OSError):
        os.nice(NICENESS)


def obey_parent() -> None:
    """Ignore signals to all processes of a terminal or service, and dump no memory.

    The process stops only when the parent does.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def lift_limits() -> None:
    """Undo ``limit_growth``, before the parent's own content is loaded."""
    for kind in (resource.RLIMIT_DATA, resource.RLIMIT_FSIZE):
        most = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most, most))


def limit_growth(growth: int) -> bool:
    """Let this process take ``growth`` bytes more than it has, and write no file.

    Claim: if this returns true, the system refuses memory beyond these bytes.
    Assumes: the system enforces ``RLIMIT_DATA``.
    Argument: the memory that the process has is found by trial. The least limit that leaves room
        for ``growth`` bytes is kept, and the trial showed that a lower limit refuses them.
    """
    _limit(resource.RLIMIT_FSIZE, 0)
    low, high = (
        mmap.PAGESIZE,
        1 << 44,
    )  # Linux treats a limit of 0 as no limit, for the sake of Valgrind
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
    """Whether this process could take ``size`` bytes more."""
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, ValueError):
        return False
    return True


def watch(growth: int, end: Callable[[int], object] = os._exit, pause: float = 0.01) -> None:
    """End this process soon after it took more memory. For systems that enforce no such limit."""
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
    """The memory that this process has now, for gauges; its peak if the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return peak()
    return pages * resource.getpagesize()
