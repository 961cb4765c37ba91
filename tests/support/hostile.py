"""Statements of people who want to know about one person: fixtures/hostile, one class a file.

Statements are separated by blank lines. A line of words may stand above one: ``never`` says that
it must be refused whatever else is answered one day, ``escaped`` that it is written with Python's
escapes, ``expanded`` that ``«text×n»`` stands for n times the text. A statement without ``never``
may be answered, and must then keep every claim.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from support.datasets import FIXTURES

_WORDS = re.compile(r"-- ((?:never|escaped|expanded)(?: never)?)\n")
_TIMES = re.compile("«(.*?)×(\\d+)»", re.DOTALL)


@dataclass(frozen=True)
class Hostile:
    """A statement with its class; ``never`` says that no answer to it could be private."""

    kind: str
    name: str
    sql: str
    never: bool

    def __str__(self) -> str:
        return self.name


def _statement(kind: str, number: int, text: str) -> Hostile:
    found = _WORDS.match(text)
    words = found[1].split() if found else []
    sql = text[found.end() :] if found else text
    if "escaped" in words:
        sql = re.sub(r"\\(?:u([0-9a-f]{4})|x([0-9a-f]{2})|t)", _character, sql)
    if "expanded" in words:
        sql = _TIMES.sub(lambda m: m[1] * int(m[2]), sql)
    return Hostile(kind, f"{kind}-{number}", sql, "never" in words)


def _character(found: re.Match[str]) -> str:
    digits = found[1] or found[2]
    return chr(int(digits, 16)) if digits else "\t"


def _statements() -> tuple[Hostile, ...]:
    found = []
    for path in sorted((FIXTURES / "hostile").glob("*.sql")):
        texts = [t.strip() for t in path.read_text().split("\n\n") if t.strip()]
        found += [_statement(path.stem, i, t) for i, t in enumerate(texts, 1)]
    return tuple(found)


HOSTILE = _statements()
