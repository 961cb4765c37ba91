"""A view of the source that adds doubles up may have other sums each time that a statement reads it.

The order in which threads of an engine meet rows decides the last digits of a sum, and of numbers that
cancel each other all digits. A machine does so by chance. Here it is certain: the places of a statement
that read such a view get in turn the view, and another one over the same rows in another order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.adversary.dice import Dice

_SHARED = re.compile(r'("[^"]+") AS NOT MATERIALIZED \(')


def reread(sql: str, readings: Sequence[tuple[str, str]], moment: int) -> str:
    """The statement in which each place has another reading than the place before it.

    >>> reread('SELECT 1 FROM "a" AS t JOIN "a" AS u', [("a", "b")], 1)
    'SELECT 1 FROM "a" AS t JOIN "b" AS u'
    """
    if not readings:
        return sql
    text = spelled_out(sql)
    for view, other in readings:
        first, *rest = re.split(rf'(?<![."\w])"{view}"(?= AS )', text)
        at = Dice(f"reading {view} {moment}").number(2)
        text = first + "".join(
            f'"{(view, other)[(at + n) % 2]}"{after}' for n, after in enumerate(rest)
        )
    return text


def spelled_out(text: str) -> str:
    """A statement in which a query that is read wherever it is named stands in all these places.

    >>> spelled_out('WITH "a" AS NOT MATERIALIZED (SELECT 1) SELECT * FROM "a" AS b, "a" AS c')
    'SELECT * FROM (SELECT 1) AS b, (SELECT 1) AS c'
    """
    while found := _SHARED.search(text):
        end, depth = found.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        query = text[found.end() : end - 1]
        head, rest = text[: found.start()].rstrip(), text[end:].lstrip()
        head = head.removesuffix(",").removesuffix("WITH")
        more, head = rest.startswith(","), head.rstrip()
        joint = (", " if head else "WITH ") if more else (" " if head else "")
        text = (head + joint + rest.removeprefix(",").lstrip()).replace(found[1], f"({query})")
    return text
