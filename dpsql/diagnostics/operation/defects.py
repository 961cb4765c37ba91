"""Defects of dpsql as events. The message of an error may quote rows, so it is not kept."""

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
    """Record an unexpected error; returns the number of the incident, which the client is told.

    Claim: the event contains nothing of a row.
    Assumes: no class and no file is named after data.
    Argument: the event has the class of the error and the lines of code in its traceback. The
        message of the error is left out, and so are the messages of its causes, which may be an
        engine's.
    """
    incident = secrets.token_hex(4)
    record(Defect(incident, type(error).__name__, _where(error.__traceback__)))
    return incident


def record_stray(loop: asyncio.AbstractEventLoop) -> None:
    """Record uncaught errors in threads, in the event loop and in destructors as defects.

    Without this, Python would print them to standard error with their messages.
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
    """The path of a file within the package.

    >>> _short("/somewhere/site-packages/dpsql/serve/endpoint.py")
    'serve/endpoint.py'
    """
    parts = PurePath(name).parts
    own = len(parts) - parts[::-1].index("dpsql") if "dpsql" in parts else len(parts) - 1
    return "/".join(parts[own:])
