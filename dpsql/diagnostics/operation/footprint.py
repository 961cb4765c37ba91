"""The memory of this process and its children, where the system is Linux."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
MOST_CHILDREN = 64
"""The most children whose memory is read: reading must stay quick."""
_RESIDENT = re.compile(r"^VmRSS:\s+(\d+) kB", re.MULTILINE)
_SHARED_OUT = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


def resident() -> float:
    """The bytes of this process. Raises ``OSError`` if the system does not provide them."""
    return _kilobytes(_PROC / "self" / "status", _RESIDENT)


def tree() -> float:
    """The bytes of this process and its children; each shared page is counted once in total."""
    found = _kilobytes(_PROC / "self" / "smaps_rollup", _SHARED_OUT)
    for child in child_processes()[:MOST_CHILDREN]:
        with suppress(OSError, ValueError):  # it has ended meanwhile
            found += _kilobytes(_PROC / str(child) / "smaps_rollup", _SHARED_OUT)
    return found


def child_processes() -> list[int]:
    """The ids of the child processes that any thread of this process has started."""
    own, found = str(os.getpid()), list[int]()
    for task in (_PROC / "self" / "task").iterdir():
        with suppress(OSError):  # the thread has ended meanwhile
            found += [int(pid) for pid in (task / "children").read_text().split() if pid != own]
    return found


def _kilobytes(path: Path, pattern: re.Pattern[str]) -> float:
    found = pattern.search(path.read_text())
    if found is None:
        raise ValueError(f"{path} does not say it")
    return 1024.0 * int(found[1])
