"""What is certain of a value, and what may stand beside what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import Any

from dpsql.engines.duckdb.guard.parts import Node


class Unsafe(Exception):
    """A statement that must not run; the words name its parts, never data."""


WHOLE, DOUBLE, TEXT, TRUTH = "whole", "double", "text", "truth"
DATE, TIME, NULL, SPAN, LIST, STORED = "date", "time", "null", "span", "list", "stored"
NUMBERS = (WHOLE, DOUBLE)
SAME_BYTES = frozenset([WHOLE, TEXT, TRUTH, DATE, TIME, NULL, "uuid", "timestamptz"])
"""Kinds of which equal values are the same bytes. Doubles have two zeros and several NaN, spans of
time several spellings, and records, lists and whatever else there is may hold those."""
KINDS = {
    "BIGINT": WHOLE, "INTEGER": WHOLE, "HUGEINT": WHOLE, "DOUBLE": DOUBLE, "VARCHAR": TEXT,
    "BOOLEAN": TRUTH, "DATE": DATE, "TIMESTAMP": TIME, "INTERVAL": SPAN,
}  # fmt: skip
BITS = {"INTEGER": 31, "BIGINT": 63, "HUGEINT": 127}
"""Whole numbers of a type are below two to the power of this."""
ABOVE, BELOW = 1, 2
"""The sides on which a number is as large as a unit has rows."""

End = Any
"""An int, or a Fraction: no type is above both but object."""
Origin = tuple[str, int, int, int]
"""A part of a table's key: the table, which part of how many, and by which reading of a table."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What is certain of a value.

    ``low`` and ``high`` are ends that constants of the statement give it (for what is no number:
    0, where there are any), ``bits`` how many its type has. ``unit`` are the parts of the unit's
    key that it is; ``keys`` those of the key of a row that says whose rows these are. ``held`` is
    the declared type of a stored column.

    A double that is ``whole`` has no fraction. Of ``canonical`` values those that compare as equal are
    the same bytes; where a value is ``picked``, the order of rows decided which of several equal ones. ``exact`` numbers are of rows of several units, and
    wait for noise. On the sides ``many``, what one unit's number is grows with its rows; a ``share``
    shrinks with them. ``shown`` is whether a group may be named by it.
    """

    kind: str
    low: End | None = None
    high: End | None = None
    bits: int = 0
    unit: frozenset[int] = frozenset()
    keys: frozenset[Origin] = frozenset()
    held: str = ""
    exact: bool = False
    many: int = 0
    share: bool = False
    shown: bool = True
    whole: bool = False
    canonical: bool = False
    picked: bool = False
    fields: Mapping[str, Fact] = field(default_factory=dict, compare=False)

    @property
    def bounded(self) -> bool:
        """Whether constants of the statement are on both sides of it."""
        return self.low is not None and self.high is not None

    @property
    def identical(self) -> bool:
        """Whether values that compare as equal are the same bytes."""
        kind = self.held if self.kind == STORED else self.kind
        return kind in SAME_BYTES or self.canonical

    @property
    def nonzero(self) -> bool:
        """Whether its ends leave no room for zero."""
        return (self.low or 0) > 0 or (self.high or 0) < 0

    @property
    def size(self) -> End:
        """How far a bounded number is from zero at most."""
        return max(abs(self.low or 0), abs(self.high or 0))


@lru_cache(maxsize=256)
def plain(kind: str) -> Fact:
    """A fact about a value of which its kind is certain, made once: there are few of them."""
    return Fact(kind)


def fact_of_size(kind: str, size: int, bits: int = 63) -> Fact:
    """A number between minus and plus ``size``; of anything else, that constants bound it."""
    return Fact(kind, -size, size, bits)


def kind_of(node: Node) -> Fact:
    """The kind of a type; lists of records have a fact for each field."""
    name = node["type_name"].upper()
    if name == "LIST":
        return kind_of(node["children"][0])
    if name == "STRUCT":
        return Fact(STORED, fields={c["alias"]: kind_of(c) for c in node["children"]})
    if name not in KINDS or node["children"]:  # what else a type says may be a collation
        raise Unsafe(f"the type {name}")
    return Fact(KINDS[name], bits=BITS.get(name, 0))


def merge_facts(found: list[Fact]) -> Fact:
    """What is certain of a value that is one of several."""
    if len(found) == 1:
        return found[0]
    known = [f for f in found if f.kind != NULL] or found
    alike(known)
    kinds = {f.kind for f in known}
    if not (len(kinds) == 1 or kinds <= set(NUMBERS)):
        raise Unsafe(f"one value of {' and '.join(sorted(kinds))}")
    ends = [(f.low, f.high) for f in found if f.kind != NULL or not f.bounded]
    first = known[0]
    return Fact(
        first.kind if len(kinds) == 1 else DOUBLE,
        least(low for low, _ in ends), greatest(high for _, high in ends),
        max(f.bits for f in found),
        reduce(frozenset.intersection, [f.unit for f in found]),
        reduce(frozenset.intersection, [f.keys for f in found]),
        first.held, any(f.exact for f in found),
        reduce(int.__or__, [f.many for f in found]), any(f.share for f in found),
        all(f.shown for f in found), all(f.whole or f.kind == WHOLE for f in known),
        all(f.canonical or f.kind == WHOLE for f in found), any(f.picked for f in found), first.fields,
    )  # fmt: skip


def least(ends: Iterable[End | None]) -> End | None:
    """The lowest of several low ends; None if one of them has none."""
    known = list(ends)
    return 0 if not known else None if None in known else min(known)  # type: ignore[type-var]


def greatest(ends: Iterable[End | None]) -> End | None:
    """The highest of several high ends; None if one of them has none."""
    known = list(ends)
    return 0 if not known else None if None in known else max(known)  # type: ignore[type-var]


def alike(found: list[Fact]) -> None:
    """Only like stands beside like: else an engine converts, and may fail on what a row holds.

    Stored columns are alike if they are declared so: of one type, or one key.
    """
    kinds = {f.kind for f in found} - {NULL}
    if kinds == {STORED}:
        one, *others = found
        for other in others:
            same = {part[:2] for part in one.keys} & {part[:2] for part in other.keys}
            if not (same or one.unit & other.unit or (one.held and one.held == other.held)):
                raise Unsafe("stored columns together that are of different types")
    if len(kinds) < 2 or kinds <= set(NUMBERS):
        return
    if kinds == {DATE, TIME} and any(f.bounded for f in found):
        return
    raise Unsafe(f"{' beside '.join(sorted(kinds))}")


def hide_fact(fact: Fact) -> Fact:
    """The same, of what must not name a group."""
    return fact if not fact.shown else replace(fact, shown=False)
