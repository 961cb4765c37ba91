"""The certain facts of a value, and the kinds of values that may be combined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import Any

from dpsql.engines.duckdb.guard.parts import Node


class Unsafe(Exception):
    """Raised for a statement that must not run. The message names its parts, never data."""


WHOLE, DOUBLE, TEXT, TRUTH = "whole", "double", "text", "truth"
DATE, TIME, NULL, SPAN, LIST, STORED = "date", "time", "null", "span", "list", "stored"
NUMBERS = (WHOLE, DOUBLE)
SAME_BYTES = frozenset([WHOLE, TEXT, TRUTH, DATE, TIME, NULL, "uuid", "timestamptz"])
"""Kinds whose equal values have the same bytes. Doubles have two zeros and several NaN, intervals
have several forms, and records, lists and other kinds may hold those."""
KINDS = {
    "BIGINT": WHOLE, "INTEGER": WHOLE, "HUGEINT": WHOLE, "DOUBLE": DOUBLE, "VARCHAR": TEXT,
    "BOOLEAN": TRUTH, "DATE": DATE, "TIMESTAMP": TIME, "INTERVAL": SPAN,
}  # fmt: skip
BITS = {"INTEGER": 31, "BIGINT": 63, "HUGEINT": 127}
"""The bits of whole-number types: absolute values are at most two to the power of these."""
ABOVE, BELOW = 1, 2
"""The sides on which a number may grow with a unit's number of rows."""

End = Any
"""An int or a Fraction, whose only common type is object."""
Origin = tuple[str, int, int, int]
"""A part of a table's key: the table, the part's position, the number of parts, and the reading."""


@dataclass(frozen=True, slots=True)
class Fact:
    """The certain facts of a value.

    ``low`` and ``high`` are bounds by constants of the statement. For a value that is no number
    they are 0 if it has such bounds. ``bits`` are those of its type. ``unit`` has the positions of
    the parts of the unit's key that are equal to the value. ``keys`` has the same for the key of a
    row that tells the unit of these rows. ``held`` is the declared type of a stored column.

    A double that is ``whole`` has no fraction. ``canonical`` values that compare as equal have the
    same bytes. If a value is ``picked``, the order of rows chose it among several equal ones.
    ``exact`` numbers are of rows of several units, and need noise. On the sides ``many``, one
    unit's number grows with its rows; a ``share`` shrinks with them. ``shown`` says whether the
    value may name a group.
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
        """Whether constants of the statement bound it on both sides."""
        return self.low is not None and self.high is not None

    @property
    def identical(self) -> bool:
        """Whether values that compare as equal have the same bytes."""
        kind = self.held if self.kind == STORED else self.kind
        return kind in SAME_BYTES or self.canonical

    @property
    def nonzero(self) -> bool:
        """Whether its bounds exclude zero."""
        return (self.low or 0) > 0 or (self.high or 0) < 0

    @property
    def size(self) -> End:
        """The largest absolute value of a bounded number."""
        return max(abs(self.low or 0), abs(self.high or 0))


@lru_cache(maxsize=256)
def plain(kind: str) -> Fact:
    """The fact of a value of which only the kind is certain. Each is made once."""
    return Fact(kind)


def fact_of_size(kind: str, size: int, bits: int = 63) -> Fact:
    """A number between minus and plus ``size``. A value of another kind is bounded by constants."""
    return Fact(kind, -size, size, bits)


def kind_of(node: Node) -> Fact:
    """The fact of a type. A list of records has a fact for each field."""
    name = node["type_name"].upper()
    if name == "LIST":
        return kind_of(node["children"][0])
    if name == "STRUCT":
        return Fact(STORED, fields={c["alias"]: kind_of(c) for c in node["children"]})
    if name not in KINDS or node["children"]:  # a type's further parts may be a collation
        raise Unsafe(f"the type {name}")
    return Fact(KINDS[name], bits=BITS.get(name, 0))


def merge_facts(found: list[Fact]) -> Fact:
    """The facts of a value that is one of several values."""
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
    """The lowest of several low ends; None if one of them is None."""
    known = list(ends)
    return 0 if not known else None if None in known else min(known)  # type: ignore[type-var]


def greatest(ends: Iterable[End | None]) -> End | None:
    """The highest of several high ends; None if one of them is None."""
    known = list(ends)
    return 0 if not known else None if None in known else max(known)  # type: ignore[type-var]


def alike(found: list[Fact]) -> None:
    """Refuse to combine values of different kinds: an engine would convert them, and might fail.

    Stored columns are alike if they have the same declared type, or are the same part of one key.
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
    """The fact of a value that must not name a group."""
    return fact if not fact.shown else replace(fact, shown=False)
