"""Generated SQL over several lines, for reading. Only white space changes."""

from __future__ import annotations

import re
from collections.abc import Iterator

WIDTH = 96
_PART = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|(\$\w*\$).*?\1|--[^\n]*|/\*.*?\*/|(;)|.""", re.DOTALL
)
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]|[^\s()'"]+|\s+""")
_CLAUSES = {"SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "LEFT", "WITH"}


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


def laid_out(sql: str) -> str:
    """One clause to a line, nested queries indented, long clauses wrapped.

    >>> print(laid_out("SELECT a, count(*) FROM (SELECT 'x  y' AS a FROM t) AS s GROUP BY 1"))
    SELECT a, count(*)
    FROM (
      SELECT 'x  y' AS a
      FROM t
    ) AS s
    GROUP BY 1
    """
    return "\n".join(line for depth, words in _clauses(sql) for line in _wrapped(depth, words))


def _clauses(sql: str) -> Iterator[tuple[int, list[str]]]:
    """Each line's depth and its words; a word holds whatever has no white space to break at."""
    pieces = _TOKEN.findall(sql)
    nested: list[bool] = []
    words, glued, depth = list[str](), False, 0
    for i, piece in enumerate(pieces):
        if piece.isspace():
            glued = False
            continue
        within = not nested or nested[-1]
        closing = piece == ")" and bool(nested)
        if words and within and (closing or (not glued and _begins(piece, words[-1]))):
            yield depth, words
            words = []
        if closing:
            depth -= nested.pop()
        words = [*words[:-1], words[-1] + piece] if glued and words else [*words, piece]
        glued = True
        if piece == "(":
            nested.append(_follows(pieces, i) in ("SELECT", "WITH"))
            if nested[-1]:
                yield depth, words
                words, depth = [], depth + 1
    yield depth, words


def _begins(word: str, before: str) -> bool:
    """Whether a clause begins here (the FROM of IS DISTINCT FROM does not)."""
    return word in _CLAUSES and before != "DISTINCT"


def _follows(pieces: list[str], i: int) -> str:
    return next((piece for piece in pieces[i + 1 :] if not piece.isspace()), "")


def _wrapped(depth: int, words: list[str]) -> Iterator[str]:
    """One line if it fits, else one line for each item of the list, else as many as it takes."""
    indent = "  " * depth
    if len(indent) + len(" ".join(words)) <= WIDTH:
        yield indent + " ".join(words)
        return
    for item in _items(words):
        yield from _filled(item, indent, "  " * depth + "        ")
        indent = "  " * depth + "    "


def _filled(words: list[str], first: str, rest: str) -> Iterator[str]:
    line = first + words[0]
    for word in words[1:]:
        if len(line) + 1 + len(word) > WIDTH:
            yield line
            line = rest + word
        else:
            line += f" {word}"
    yield line


def _items(words: list[str]) -> Iterator[list[str]]:
    """The parts of a list, each with its comma."""
    item, depth = list[str](), 0
    for word in words:
        item.append(word)
        depth += word.count("(") - word.count(")")
        if depth == 0 and word.endswith(","):
            yield item
            item = []
    if item:
        yield item
