"""Casts and constants: the facts of a value as another type, and whether a cast can fail.

Claim: a plain CAST of a column never fails. Its pair of kinds never fails, or it casts a number
    whose bounds, from constants of the statement, are within the type.
Assumes: the engine converts as its documentation says; tests try pairs of kinds at their limits.
Argument: ``is_total_cast`` checks this. All other casts are TRY_CASTs, are inside TRY, or are of
    constants.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dpsql.engines.duckdb.guard.facts import (
    DATE,
    DOUBLE,
    NULL,
    NUMBERS,
    SPAN,
    STORED,
    TEXT,
    TIME,
    TRUTH,
    WHOLE,
    End,
    Fact,
    Unsafe,
)
from dpsql.engines.duckdb.guard.parts import Node
from dpsql.engines.duckdb.guard.sizes import fits
from dpsql.memory.cache import memoize
from dpsql.memory.pool import Use

_LITERALS = {
    "INTEGER": WHOLE, "BIGINT": WHOLE, "HUGEINT": WHOLE, "DECIMAL": DOUBLE, "DOUBLE": DOUBLE,
    "FLOAT": DOUBLE, "NUMERIC": DOUBLE, "STRING": TEXT, "BOOLEAN": TRUTH, "NULL_LITERAL": NULL,
}  # fmt: skip
SURE = frozenset(
    [(kind, TEXT) for kind in (WHOLE, DOUBLE, TEXT, TRUTH, DATE, TIME, SPAN)]
    + [(kind, kind) for kind in (DOUBLE, TRUTH, DATE, TIME, SPAN)]
    + [(NULL, kind) for kind in (WHOLE, DOUBLE, TEXT, TRUTH, DATE, TIME, SPAN)]
    + [(WHOLE, DOUBLE), (TRUTH, WHOLE)]
)
"""Pairs of kinds between which a plain CAST never fails, whatever the value."""
SHORT = frozenset(["date_part", "epoch_us", "length", "strpos", "sign"])
"""Functions whose results are whole numbers below 2**63, whatever the value."""
_SAME = {("uuid", TEXT), (DATE, TIME), ("timestamptz", TIME)}
"""Casts of different kinds that keep different values different: sessions are in UTC."""


@memoize(Use.CACHED_CHECKS, 1024)
def read_constant(kind: str, text: str) -> Fact:
    """The facts of a constant, from its kind of literal and its text."""
    if kind not in _LITERALS:
        raise Unsafe(f"a constant of type {kind}")
    if _LITERALS[kind] not in NUMBERS:
        return Fact(_LITERALS[kind], 0, 0, canonical=kind == "NULL_LITERAL")
    value = Fraction(text)
    if _LITERALS[kind] == WHOLE and abs(value) < 1 << 127:
        bits = next(b for b in (31, 63, 127) if abs(value) < 1 << b)
        return Fact(WHOLE, int(value), int(value), bits)
    one = bool(value) or not text.startswith("-")
    return Fact(DOUBLE, value, value, whole=value.denominator == 1, canonical=one)


def cast(child: Fact, target: Fact, *, given: bool) -> Fact:
    """The facts of a value as another type; ``given`` values are passed with the statement."""
    if child.picked:
        raise Unsafe("a CAST of one of several equal values that the order of rows has picked")
    low, high = child.low, child.high
    whole = target.kind == DOUBLE and (child.kind == WHOLE or child.whole)
    if target.kind in NUMBERS and child.kind == TRUTH:
        low, high = 0, 1
    elif target.kind in NUMBERS and child.kind not in (*NUMBERS, STORED):
        most = 1 << target.bits if given and target.kind == WHOLE else None
        low, high = None if most is None else -most, most
    elif target.kind not in NUMBERS:
        low = high = 0 if given or (child.bounded and child.kind in (DATE, TIME)) else None
    elif target.kind == WHOLE and child.kind in (DOUBLE, STORED):
        low = None if low is None else math.floor(low)
        high = None if high is None else math.ceil(high)
    apart, one = separate(child, target), target.kind == DOUBLE and _one_double(child)
    owned = apart and (child.unit or child.keys)
    if not (owned or child.many or child.share or child.exact or target.fields):
        return _number(target.kind, low, high, target.bits, whole=whole, canonical=one)
    return Fact(
        target.kind, low, high, target.bits, child.unit if apart else frozenset(),
        child.keys if apart else frozenset(), exact=child.exact, many=child.many,
        share=child.share, whole=whole, canonical=one, fields=target.fields,
    )  # fmt: skip


def separate(child: Fact, target: Fact) -> bool:
    """Whether a cast keeps different values different."""
    held = child.held if child.kind == STORED else child.kind
    same = held == target.kind or (held, target.kind) in _SAME
    return same and child.bits <= target.bits


@lru_cache(maxsize=1024)
def _number(
    kind: str, low: End | None, high: End | None, bits: int, *, whole: bool, canonical: bool
) -> Fact:
    return Fact(kind, low, high, bits, whole=whole, canonical=canonical)


def _one_double(child: Fact) -> bool:
    """Whether equal values become the same double: whole numbers have one zero."""
    held = child.held if child.kind == STORED else child.kind
    return held in (WHOLE, TRUTH) or child.canonical


def is_total_cast(node: Node, child: Fact, target: Fact) -> bool:
    """Whether a plain CAST cannot fail: its pair is listed, or the number fits into the type."""
    if node["type_expr"]["type_name"] in ("LIST", "STRUCT"):
        return False
    if (child.kind, target.kind) in SURE:
        return True
    if target.kind != WHOLE:
        return False
    widest = node["type_expr"]["type_name"] == "HUGEINT" and child.kind == WHOLE
    return widest or _in_64_bits(node) or (child.kind in NUMBERS and fits(child, target.bits))


def _in_64_bits(node: Node) -> bool:
    """Whether a cast to BIGINT is of a function whose results fit into 64 bits."""
    inner = node["child"]
    while inner["class"] == "OPERATOR" and inner["type"] == "OPERATOR_TRY":
        (inner,) = inner["children"]
    short = inner["class"] == "FUNCTION" and inner["function_name"] in SHORT
    return short and bool(node["type_expr"]["type_name"] == "BIGINT")
