"""Merges a new draft of a policy into a text that its owner has edited, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged lines, and the lines of the new draft that the owner's edits stand in for."""

    lines: tuple[str, ...]
    overruled: tuple[str, ...]


def merge(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> Merged:
    """``mine`` with the changes from ``base`` to ``theirs``, where ``mine`` did not change it too.

    A line that the owner edited, added or removed stays so. Where both changed the same lines,
    lines that are only added after or before them are added; else the owner's lines stay.

    >>> merge(["a", "b", "c"], ["a", "B", "c"], ["a", "b", "c", "d"]).lines
    ('a', 'B', 'c', 'd')
    >>> merge(["a: "], ["a: 1"], ["a: 2", "b: 3"]).overruled
    ('a: 2', 'b: 3')
    """
    found, overruled = list[str](), list[str]()
    for old, own, new in _chunks(base, mine, theirs):
        if own == old:
            found += new
        elif new in (old, own):
            found += own
        elif new[: len(old)] == old:
            found += [*own, *new[len(old) :]]
        elif new[len(new) - len(old) :] == old:
            found += [*new[: len(new) - len(old)], *own]
        elif own[: len(old)] == old:
            found += [*new, *own[len(old) :]]
        else:
            found += own
            overruled += [line for line in new if line not in own]
    return Merged(tuple(found), tuple(overruled))


_Chunk = tuple[list[str], list[str], list[str]]


def _chunks(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> Iterator[_Chunk]:
    """The three texts in parts: lines that all have, and the lines between them."""
    one, two = _places(base, mine), _places(base, theirs)
    b = m = t = 0
    for place in range(len(base) + 1):
        last = place == len(base)
        if not last and (place not in one or place not in two):
            continue
        here = (len(mine), len(theirs)) if last else (one[place], two[place])
        yield list(base[b:place]), list(mine[m : here[0]]), list(theirs[t : here[1]])
        if not last:
            yield [base[place]], [base[place]], [base[place]]
            b, m, t = place + 1, here[0] + 1, here[1] + 1


def _places(base: Sequence[str], other: Sequence[str]) -> dict[int, int]:
    """The places in ``other`` of the lines of ``base`` that it has."""
    blocks = SequenceMatcher(None, base, other, autojunk=False).get_matching_blocks()
    return {x.a + i: x.b + i for x in blocks for i in range(x.size)}
