"""What the process of ``dpsql serve`` is set to, and how it ends whatever its threads do."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import sys
from typing import NoReturn

SWITCH_SECONDS = 0.0005
OTHER_FILES = 1_000
"""For clients that have not logged in, the database, the ledger and workers."""


def share_time() -> None:
    """Let threads have their turn in Python more often than usual.

    The thread that reads what clients send needs the interpreter for moments. Each time it waits for
    the threads that plan statements, as long as each of them may keep the interpreter. With the usual
    5 ms and eight of them a small answer waits for a second in all; with this, for 60 ms.
    """
    sys.setswitchinterval(SWITCH_SECONDS)


def allow_files(count: int) -> int:
    """Let the process have so many files and connections open, as far as the system permits it."""
    try:
        import resource
    except ImportError:  # not on this system, which has no such limit
        return count
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
            return allowed
    return min(count, soft) if soft != resource.RLIM_INFINITY else count


def end_within(seconds: float) -> None:
    """End the process after so long, whatever its threads do.

    It is the last resort, for what hangs where nothing in Python can end it. What is written before is
    where each thread is, by files and lines of code. A ledger that is left so is as after a kill:
    what was charged is on the disk.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):  # no standard error to write to
        faulthandler.dump_traceback_later(seconds, exit=True, file=sys.stderr)


def leave(status: int) -> NoReturn:
    """End now, after everything that is kept has been closed.

    Threads that still run are not waited for. The interpreter is not taken apart either: daemon threads
    still refer to engines then, and the engine's library would report each as a leak on standard error.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)
