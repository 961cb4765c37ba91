"""The problems of a policy, each with its place, reported in the order of the text."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from dpsql.diagnostics.quote import LINES, PIECE, cut_lines, quote


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One-based line and column in the policy file."""

    line: int = 1
    column: int = 1


class Problems:
    """Collects problems (the policy cannot be used) and warnings (it can)."""

    def __init__(self, name: str) -> None:
        """``name`` is the name of the file, as the caller gave it."""
        self._name = name
        self._problems: list[tuple[Place, str]] = []
        self._warnings: list[tuple[Place, str]] = []
        self._long: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._problems)

    def heard(self, text: str) -> None:
        """Note a text of the file: if it is long, problems that repeat it cut it."""
        if len(text) > PIECE:
            self._long[text] = None

    def told(self, place: Place) -> str:
        """The name of the file with ``place``."""
        return f"{self._name}:{place.line}:{place.column}"

    def add(self, place: Place, what: str) -> None:
        """Add a problem; ``what`` says what is wrong and what to write."""
        self._problems.append((place, what))

    def warn(self, place: Place, what: str) -> None:
        """Add a warning; ``what`` says what may be unwanted."""
        self._warnings.append((place, what))

    @property
    def lines(self) -> tuple[str, ...]:
        """The problems as ``file:line:column: what`` lines."""
        return self._told(self._problems)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, in the same form."""
        return cut_lines(self._told(self._warnings))

    def _told(self, found: list[tuple[Place, str]]) -> tuple[str, ...]:
        ordered = sorted(dict.fromkeys(found), key=lambda pair: pair[0])
        first = [
            (place, self._cut(what)) for place, what in ordered[:LINES]
        ]  # the rest is not shown
        return tuple(f"{self.told(p)}: {what}" for p, what in (*first, *ordered[LINES:]))

    def _cut(self, what: str) -> str:
        for text in sorted(self._long, key=len, reverse=True):
            what = what.replace(text, quote(text))
        return what


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The name that ``word`` was probably meant to be, or None.

    >>> nearest("colums", ["columns", "unit"])
    'columns'
    """
    folded: dict[str, str] = {}
    for name in names:
        folded.setdefault(name.casefold(), name)
    close = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def instead(word: str, names: Iterable[str], kind: str) -> str:
    """The end of a message about an unknown name: the nearest name, or the list of names.

    >>> instead("zzz", ["b", "a"], "tables")
    'the tables are: a, b'
    """
    known = sorted(set(names))
    guess = nearest(word, known)
    if guess is not None:
        return f'did you mean "{guess}"?'
    some = ", ".join(known[:LINES]) + (", ..." if len(known) > LINES else "")
    return f"the {kind} are: {some}" if known else f"there are no {kind}"
