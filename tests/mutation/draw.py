"""Which changes are tried: the same ones for the same seed and the same code."""

from __future__ import annotations

import random  # noqa: TID251 (which changes are tried needs no good randomness)
from collections.abc import Iterator
from pathlib import Path

from tests.mutation.changes import Change, changes

FOLDERS = (
    "privacy",
    "plan",
    "declarations",
    "bound",
    "price",
    "rewrite",
    "release",
    "ledger",
    "serve",
    "engines/duckdb/guard",
    "reuse",
)
"""Where an error costs privacy, money or the service."""


def draw(root: Path, seed: int) -> Iterator[Change]:
    """Changes of the folders in turn, so that the largest does not have most; none comes twice."""
    source = random.Random(seed)
    piles = []
    for folder in FOLDERS:
        pile = [
            change
            for path in sorted((root / "dpsql" / folder).rglob("*.py"))
            for change in changes(path.relative_to(root).as_posix(), path.read_text("utf-8"))
        ]
        source.shuffle(pile)
        piles.append(pile)
    while any(piles):
        for pile in piles:
            while pile:
                change = pile.pop()
                if _compiles(root, change):
                    yield change
                    break


def _compiles(root: Path, change: Change) -> bool:
    text = (root / change.path).read_text("utf-8")
    try:
        compile(change.applied(text), change.path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
