"""A defect of dpsql as an event: what the error says itself may quote rows, and is not kept."""

from __future__ import annotations

import asyncio
import secrets
import sys
import threading
import traceback
from pathlib import PurePath
from types import TracebackType

from dpsql.diagnostics.operation.events import Defect, record

_MOST = 20


def defect(error: BaseException) -> str:
    """Record what kind of error it is and which lines it passed; the number that the client is told.

    Claim: nothing of a row is kept.
    Assumes: no class and no file is named after data.
    Argument: the event has the class of the error and the lines of code that it passed. The error's own words are
        left out, and so are those of its causes: they may be an engine's.
    """
    incident = secrets.token_hex(4)
    record(Defect(incident, type(error).__name__, _where(error.__traceback__)))
    return incident


def record_stray(loop: asyncio.AbstractEventLoop) -> None:
    """Record, and do not print, errors that nobody catches: in threads, in the loop, and in destructors.

    Python would write them to standard error with their own words.
    """
    threading.excepthook = lambda found: _stray(found.exc_value)
    sys.unraisablehook = lambda found: _stray(found.exc_value)
    loop.set_exception_handler(lambda _, found: _stray(found.get("exception")))


def _stray(error: BaseException | None) -> None:
    if error is not None and not isinstance(error, SystemExit):
        defect(error)


def _where(found: TracebackType | None) -> str:
    frames = [
        f"{_short(frame.f_code.co_filename)}:{line}" for frame, line in traceback.walk_tb(found)
    ]
    return " > ".join(frames[-_MOST:])


def _short(name: str) -> str:
    """The file within its package.

    >>> _short("/somewhere/site-packages/dpsql/serve/endpoint.py")
    'serve/endpoint.py'
    """
    parts = PurePath(name).parts
    own = len(parts) - parts[::-1].index("dpsql") if "dpsql" in parts else len(parts) - 1
    return "/".join(parts[own:])
