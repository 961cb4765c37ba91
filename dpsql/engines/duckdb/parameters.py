"""The parameters of a statement's text."""

from __future__ import annotations

import re

from dpsql.memory.cache import memoize
from dpsql.memory.pool import Use

_TOKENS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w+)""")


@memoize(Use.CACHED_STATEMENTS, 512)
def parameters(sql: str) -> frozenset[str]:
    r"""The names of the parameters of a generated statement.

    They are read from the text that runs, because an engine refuses both missing and unused values,
    and a part of a tree that no column needs is not written.

    >>> sorted(parameters("SELECT $salt + 1, '$x' AS \"$y\" WHERE a = $x0_"))
    ['salt', 'x0_']
    """
    return frozenset(filter(None, _TOKENS.findall(sql)))
