"""The limits on what an error quotes: enough to find the place, never a whole file.

Claim: the text of an error has a bounded length, and no quoted piece of a file, a statement or an
    argument is longer than ``PIECE`` characters (``STATEMENT`` where SQL is suggested).
Assumes: a new kind of error follows the same rules as the existing ones.
Argument: code that quotes calls ``quote``. Every kind of error passes its texts through ``line``,
    which cuts each quotation and then the whole text, and its lists through ``cut_lines``.
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
    """The path of a file or an address, cut for an error."""
    return quote(str(path), 3 * PIECE)


def line(message: str, most: int = LINE) -> str:
    """A message with its quotations cut, and the whole cut to ``most`` characters.

    >>> line('"' + "x" * 1000 + '" is not known') == '"' + "x" * 60 + '... (1,000 characters)" is not known'
    True
    """
    cut = _QUOTED.sub(lambda found: f"{found[1]}{quote(found[2])}{found[1]}", message)
    return cut if len(cut) <= most else f"{cut[: most - 3]}..."


def cut_lines(lines: Sequence[str], most: int = LINE) -> tuple[str, ...]:
    """The first ``LINES`` lines, each cut, and the number of further lines."""
    told = tuple(line(text, most) for text in lines[:LINES])
    more = len(lines) - len(told)
    return (*told, f"and {more:,} more") if more else told


def _on_one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
