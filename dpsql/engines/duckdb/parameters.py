"""Which values a statement asks for when it runs."""

from __future__ import annotations

import re

from dpsql.memory.cache import memoize
from dpsql.memory.pool import Use

_TOKENS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w+)""")


@memoize(Use.CACHED_STATEMENTS, 512)
def parameters(sql: str) -> frozenset[str]:
    r"""The names of the parameters of a generated statement.

    They are read from the text that runs: an engine refuses a value too many as well as one too few,
    and a part of a tree that no column needs is not written.

    >>> sorted(parameters("SELECT $salt + 1, '$x' AS \"$y\" WHERE a = $x0_"))
    ['salt', 'x0_']
    """
    return frozenset(filter(None, _TOKENS.findall(sql)))
