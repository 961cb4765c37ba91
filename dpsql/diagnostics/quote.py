"""How much of what was read an error shows: enough to find it, never a file.

Claim: what an error says has a bounded length, and no piece of a file, a statement or an argument
    that it quotes is longer than ``PIECE`` characters (``STATEMENT`` where SQL is suggested).
Assumes: a kind of error that is added does as the others do.
Argument: whoever quotes calls ``quote``; every kind of error passes its texts through ``line``,
    which cuts what stands in quotes and then the whole, and lists through ``cut_lines``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

PIECE = 60
LINE = 600
STATEMENT = 2_000
LINES = 20
_QUOTED = re.compile(rf"""("|(?<!\w)')((?:(?!\1).){{{PIECE + 1},}})\1""", re.DOTALL)


def quote(text: str, most: int = PIECE) -> str:
    """Text from outside, on one line, cut where it is long.

    >>> quote("a name"), quote("x" * 1000, 5)
    ('a name', 'xxxxx... (1,000 characters)')
    """
    if len(text) <= most:
        return text
    return f"{_on_one_line(text[:most])}... ({len(text):,} characters)"


def place(path: object) -> str:
    """A file or an address, as an error names it."""
    return quote(str(path), 3 * PIECE)


def line(message: str, most: int = LINE) -> str:
    """A message whose quotations are cut, and which is not longer than ``most`` itself.

    >>> line('"' + "x" * 1000 + '" is not known') == '"' + "x" * 60 + '... (1,000 characters)" is not known'
    True
    """
    cut = _QUOTED.sub(lambda found: f"{found[1]}{quote(found[2])}{found[1]}", message)
    return cut if len(cut) <= most else f"{cut[: most - 3]}..."


def cut_lines(lines: Sequence[str], most: int = LINE) -> tuple[str, ...]:
    """The first lines, each cut, and how many more there are."""
    told = tuple(line(text, most) for text in lines[:LINES])
    more = len(lines) - len(told)
    return (*told, f"and {more:,} more") if more else told


def _on_one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
