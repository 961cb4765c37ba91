"""The process that opened a hold, and whether it is still alive: else the hold cannot move."""

from __future__ import annotations

import os
import platform
import secrets
from datetime import timedelta
from pathlib import Path

PROC = Path("/proc")
UNJUDGED = timedelta(days=1)
"""After this time, a process that cannot be seen from here is taken for dead."""

_open: set[str] = set()


def enlist() -> str:
    """A new name for one opened ledger of this process: boot/namespace/process/started/token."""
    name = "/".join((*_here(), str(os.getpid()), _start_time(os.getpid()), secrets.token_hex(8)))
    _open.add(name)
    return name


def retire(owner: str) -> None:
    """Note that this ledger was closed; holds that it left open will not move again."""
    _open.discard(owner)


def has_ended(owner: str, age: timedelta) -> bool:
    """Whether the opened ledger of this name, which made a hold ``age`` ago, is surely closed.

    An error here costs no privacy: a hold counts as spent while its owner lives, and afterwards.
    """
    boot, namespace, process, started, _ = (owner + "////").split("/")[:5]
    if not process.isdecimal() or boot != _here()[0]:
        return True
    if namespace != _here()[1]:
        return age > UNJUDGED
    if (int(process), started) == (os.getpid(), _start_time(os.getpid())):
        return owner not in _open
    return not _alive(int(process)) or started != _start_time(int(process))


def _here() -> tuple[str, str]:
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return boot, str((PROC / "self/ns/pid").readlink())
    except OSError:
        return platform.node().replace("/", "-"), "-"


def _start_time(process: int) -> str:
    """The start time of a process, in ticks since boot; "" if it has ended, "-" if not known."""
    try:
        state, *fields = (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "" if (PROC / "self/stat").exists() else "-"
    return "" if state in "ZX" else fields[18]


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
