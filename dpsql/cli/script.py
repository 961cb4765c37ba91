"""Splits scripts into statements."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PART = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|(\$\w*\$).*?\1|--[^\n]*|/\*.*?\*/|(;)|.""", re.DOTALL
)


def statements(script: str) -> Iterator[str]:
    """The statements of a script, without the semicolons between them.

    >>> list(statements("SELECT ';' AS a; -- one; two\\n/* ; */ SELECT 2;;"))
    ["SELECT ';' AS a", '-- one; two\\n/* ; */ SELECT 2']
    """
    begun = ""
    for part in _PART.finditer(script + ";"):
        if part[2] is None:
            begun += part[0]
        else:
            if begun.strip():
                yield begun.strip()
            begun = ""
