"""What an attack reaches inside dpsql, so that the next one can start from there.

Lines of the package are noticed once each, by ``sys.monitoring`` where Python has it and by a trace
function otherwise, which leaves code alone as soon as all its lines were met. Refusals, notes and
events are noticed by their words, with numbers and names taken out.
"""

from __future__ import annotations

import dis
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import dpsql
from tests.adversary.model import Transcript

PACKAGE = str(Path(dpsql.__file__).parent)
TOOL = 4
"""The number of this tool in ``sys.monitoring``."""
_NAMES = re.compile(r"\d+(\.\d+)?(e-?\d+)?|'[^']*'|\"[^\"]*\"|\b[a-z]+\d+\b")


class Lines:
    """Lines of the package that were executed while this watched."""

    def __init__(self) -> None:
        """Nothing was met yet."""
        self.met: set[str] = set()
        self._left: dict[CodeType, set[int]] = {}

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Notice lines while this lasts."""
        if sys.version_info >= (3, 12):
            with self._monitored():
                yield
            return
        old = sys.gettrace()
        sys.settrace(self._call)
        threading.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(old)
            threading.settrace(old)  # type: ignore[arg-type]

    def _call(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            return None
        left = self._left.get(code)
        if left is None:
            left = self._left[code] = {n for _, n in dis.findlinestarts(code) if n}
        return self._line if left else None

    def _line(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            left = self._left[frame.f_code]
            if frame.f_lineno in left:
                left.discard(frame.f_lineno)
                self._meet(frame.f_code, frame.f_lineno)
        return self._line

    def _meet(self, code: CodeType, line: int) -> None:
        self.met.add(f"{code.co_filename[len(PACKAGE) + 1 :]}:{line}")

    @contextmanager
    def _monitored(self) -> Iterator[None]:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined]

        def line(code: CodeType, number: int) -> Any:
            if code.co_filename.startswith(PACKAGE):
                self._meet(code, number)
            return monitoring.DISABLE

        monitoring.use_tool_id(TOOL, "adversary")
        monitoring.register_callback(TOOL, monitoring.events.LINE, line)
        monitoring.set_events(TOOL, monitoring.events.LINE)
        try:
            yield
        finally:
            monitoring.set_events(TOOL, 0)
            monitoring.free_tool_id(TOOL)


def words(transcript: Transcript) -> set[str]:
    """What a transcript says, in words that do not depend on names and numbers."""
    found = {_plain(note) for note in (*transcript.notes, *transcript.notices)}
    if transcript.error is not None:
        headline = transcript.error.words.splitlines()[:1]
        found.add(f"{transcript.error.code} {_plain(' '.join(headline))}")
    if transcript.step.act == "explain":
        lines = (line.strip() for line in transcript.text.splitlines())
        found |= {_plain(line) for line in lines if line.startswith(("bounded", "groups", "moved"))}
    return found


def _plain(text: str) -> str:
    return _NAMES.sub("?", text)[:120]
