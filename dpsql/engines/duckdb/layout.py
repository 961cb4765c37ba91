"""The layout of statements in several lines, for readers. A part that fits into one line is on one.

The layout only chooses the white space between words, not that in constants and quoted names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

WIDTH = 100
_WORD = re.compile(r"""(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|[^\s'"])+""")


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a query: its first words, its items, and the text between two items."""

    head: str
    items: tuple[tuple[str | Text, ...], ...] = ()
    between: str = ", "
    flat: str = field(init=False)
    nested: bool = field(init=False)

    def __post_init__(self) -> None:
        """Set the clause's text in one line, and whether it contains a query."""
        items = self.between.join(map(_flat, self.items))
        object.__setattr__(self, "flat", f"{self.head} {items}".strip())
        nested = any(isinstance(part, Text) for item in self.items for part in item)
        object.__setattr__(self, "nested", nested)


@dataclass(frozen=True, slots=True)
class Text:
    """The clauses of a query."""

    clauses: tuple[Clause, ...]
    flat: str = field(init=False)

    def __post_init__(self) -> None:
        """Set the query's text in one line."""
        object.__setattr__(self, "flat", " ".join(clause.flat for clause in self.clauses))


def _flat(item: tuple[str | Text, ...]) -> str:
    return "".join(f"({part.flat})" if isinstance(part, Text) else part for part in item)


def lay_out(text: Text) -> str:
    """The lines of a query.

    >>> print(lay_out(Text((Clause("SELECT", (("a",), ("b",))), Clause("FROM", (("t",),))))))
    SELECT a, b FROM t
    """
    return "\n".join("  " * depth + line for depth, line in _lines(text, 0))


def _lines(text: Text, depth: int) -> Iterator[tuple[int, str]]:
    if 2 * depth + len(text.flat) <= WIDTH:
        yield depth, text.flat
        return
    line = ""
    for clause in text.clauses:
        together = f"{line} {clause.flat}" if line else clause.flat
        if 2 * depth + len(together) <= WIDTH and clause.head != "UNION ALL":
            line = together
            continue
        if line:
            yield depth, line
        line = clause.flat if 2 * depth + len(clause.flat) <= WIDTH else ""
        if not line:
            nested = clause.nested
            *lines, last = _nested(clause, depth) if nested else _filled(_words(clause), depth)
            yield from lines
            if nested and last[0] == depth:
                line = last[1]  # the closing parenthesis: further words may follow on its line
            else:
                yield last
    if line:
        yield depth, line


def _nested(clause: Clause, depth: int) -> Iterator[tuple[int, str]]:
    """A clause with queries in parentheses. A query of several lines has lines of its own."""
    line = clause.head
    for i, item in enumerate(clause.items):
        line += (clause.between if i else " " if line else "").rstrip("\n")
        for part in item:
            if isinstance(part, str):
                line += part
            elif 2 * depth + len(line) + len(part.flat) + 2 <= WIDTH:
                line += f"({part.flat})"
            else:
                yield from _filled(_WORD.findall(f"{line}("), depth)
                yield from _lines(part, depth + 1)
                line = ")"
    yield from _filled(_WORD.findall(line), depth)


def _words(clause: Clause) -> list[str]:
    return _WORD.findall(clause.flat)


def _filled(words: list[str], depth: int) -> Iterator[tuple[int, str]]:
    """As many words on each line as fit."""
    line, here = "", depth
    for word in words:
        if line and 2 * here + len(line) + 1 + len(word) > WIDTH:
            yield here, line
            line, here = word, depth + 2
        else:
            line = f"{line} {word}" if line else word
    yield here, line
