"""Golden files: cases of a directive with its claims, a text, ``----``, and what is printed for it.

A file is prose (lines that begin with ``#``) and cases, which a line of ``====`` separates::

    refuse DP101 request=pure
    SELECT amount FROM orders
    ----
    DP101: this query returns rows of "orders", not aggregates over them
    ====

The first line says what to do and what must hold, so that a renewed file cannot claim another
thing. ``pytest --rewrite`` renews what is printed; people read the difference.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

END, RESULT = "====", "----"


@dataclass(frozen=True)
class Case:
    """One case: ``words`` and ``options`` of its directive, its text, and what is expected."""

    file: str
    line: int
    directive: str
    text: str
    expected: str

    @property
    def words(self) -> list[str]:
        """The directive without its options."""
        return [word for word in self.directive.split() if "=" not in word]

    @property
    def options(self) -> dict[str, str]:
        """What the directive sets, as ``name=value``."""
        pairs = (word.split("=", 1) for word in self.directive.split() if "=" in word)
        return {pair[0]: pair[1] for pair in pairs}

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def read(path: Path) -> list[Case]:
    """The cases of a file."""
    return [case for case in _parts(path) if isinstance(case, Case)]


def check(path: Path, run: Callable[[Case], str], *, rewrite: bool) -> None:
    """Compare what ``run`` prints for each case with the file, or renew the file."""
    renewed, wrong = [], []
    for part in _parts(path):
        if not isinstance(part, Case):
            renewed.append(part)
            continue
        printed = run(part)
        renewed += [part.directive, part.text, RESULT, printed, END]
        if printed != part.expected:
            wrong.append(f"{part}\n{_difference(part.expected, printed)}")
    if rewrite:
        path.write_text("\n".join(renewed) + "\n")
    elif wrong:
        raise AssertionError("\n\n".join(wrong))


def _parts(path: Path) -> Iterator[Case | str]:
    """Prose lines as text, cases as cases, in the order of the file."""
    lines = path.read_text().splitlines()
    at = 0
    while at < len(lines):
        if not lines[at].strip() or lines[at].startswith("#"):
            yield lines[at]
            at += 1
            continue
        result = lines.index(RESULT, at)
        end = lines.index(END, result)
        text, expected = "\n".join(lines[at + 1 : result]), "\n".join(lines[result + 1 : end])
        yield Case(path.name, at + 1, lines[at], text, expected)
        at = end + 1


def _difference(expected: str, printed: str) -> str:
    return "\n".join(difflib.ndiff(expected.splitlines(), printed.splitlines()))
