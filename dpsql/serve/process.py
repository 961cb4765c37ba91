"""Sets up the process of ``dpsql serve``, and ends it whatever its threads do."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import sys
from typing import NoReturn

SWITCH_SECONDS = 0.0005
OTHER_FILES = 1_000
"""Open files for clients that have not logged in, the database, the ledger and workers."""


def share_time() -> None:
    """Make the interpreter switch between threads more often than usual.

    The thread of the event loop needs the interpreter often, but only briefly. Each time it waits
    for the threads that plan statements, each of which may keep the interpreter for one interval.
    With the usual 5 ms and eight such threads, a small answer waits for a second in all. With this
    setting it waits for 60 ms.
    """
    sys.setswitchinterval(SWITCH_SECONDS)


def allow_files(count: int) -> int:
    """Raise the limit of open files to ``count``, as far as the system permits it.

    Returns how many files and connections the process may have open.
    """
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
    """End the process after so many seconds, whatever its threads do.

    This is the last resort for a thread that hangs where nothing in Python can end it. Before the
    end, the files and lines of code at which each thread is are written to standard error. The
    ledger is then as after a kill: every charge is on the disk.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):  # no standard error to write to
        faulthandler.dump_traceback_later(seconds, exit=True, file=sys.stderr)


def leave(status: int) -> NoReturn:
    """End the process now. The caller has closed everything that is durable.

    Threads that still run are not waited for. The interpreter is not finalized either: daemon
    threads may still refer to engines, and the engine's library would report each as a leak on
    standard error.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)
