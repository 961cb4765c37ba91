"""What an attack reaches inside dpsql, so that the next one can start from there.

Steps from one line of the package to another are noticed, so both ways of a branch count. This takes
about as long as the attack itself. Refusals, notes and events are noticed by their words, with numbers
and names taken out.
"""

from __future__ import annotations

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
_NAMES = re.compile(r"\d+(\.\d+)?(e-?\d+)?|'[^']*'|\"[^\"]*\"|\b[a-z]+\d+\b")


class Arcs:
    """Steps from line to line of the package that were taken while this watched."""

    def __init__(self) -> None:
        """Nothing was met yet."""
        self.met: set[str] = set()
        self._known: set[tuple[CodeType, int, int]] = set()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Notice steps while this lasts."""
        old = sys.gettrace()
        sys.settrace(self._call)
        threading.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(old)
            threading.settrace(old)  # type: ignore[arg-type]

    def _call(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        code, last = frame.f_code, 0
        if not code.co_filename.startswith(PACKAGE):
            return None

        def line(inner: FrameType, event: str, _: Any) -> Any:
            nonlocal last
            if event == "line":
                number = inner.f_lineno
                if (code, last, number) not in self._known:
                    self._known.add((code, last, number))
                    self.met.add(f"{code.co_filename[len(PACKAGE) + 1 :]}:{last}>{number}")
                last = number
            return line

        return line


def words(transcript: Transcript) -> set[str]:
    """What a transcript says, in words that do not depend on names and numbers."""
    found = {_plain(str(note)) for note in (*transcript.notes, *transcript.notices)}
    if transcript.error is not None:
        headline = transcript.error.words.splitlines()[:1]
        found.add(f"{transcript.error.code} {_plain(' '.join(headline))}")
    if transcript.step.act == "explain":
        lines = (line.strip() for line in transcript.text.splitlines())
        found |= {_plain(line) for line in lines if line.startswith(("bounded", "groups", "moved"))}
    return found


def _plain(text: str) -> str:
    return _NAMES.sub("?", text)[:120]
