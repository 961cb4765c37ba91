"""Bounds of numbers: the bounds of arithmetic results, from those of the operands.

Claim: a number of a row is between the bounds that are computed for it here.
Assumes: a statement reads at most ``ROWS`` rows, and at most ``OWN`` of one unit. It reads at most
    ``FEW`` if no table has more, since the rows that it adds up are rows of one table.
Argument: ``+ - *`` are monotonic in each argument, so their extremes are at the corners. A double
    result is the nearest to the true one, and a bound is a double or farther out.
"""

from __future__ import annotations

from dpsql.engines.duckdb.guard.facts import (
    ABOVE,
    BELOW,
    DOUBLE,
    WHOLE,
    End,
    Fact,
    Unsafe,
    greatest,
    least,
)

ROWS, OWN, FEW = 1 << 40, 1 << 31, 130_000_000
BEYOND = 1 << 1000
"""Bounds beyond this are dropped, because doubles near the end of their range become infinite."""

Ends = tuple[End | None, End | None]


def arithmetic(name: str, found: list[Fact], *, tried: bool) -> Fact:
    """The facts of an arithmetic result. Raises ``Unsafe`` if it may overflow its type."""
    whole = all(f.kind == WHOLE for f in found)
    low, high = _ends(name, found, whole=whole)
    many, share = _of_units(name, found)
    bits = max(f.bits for f in found) if whole else 0
    if whole and not tried and not _fits(low, high, bits):
        raise Unsafe(f"whole-number {name} that may overflow")
    if low is None or high is None or max(abs(low), abs(high)) > BEYOND:
        low = high = None
    exact = any(f.exact for f in found)
    return Fact(WHOLE if whole else DOUBLE, low, high, bits, exact=exact, many=many, share=share)


def _fits(low: End | None, high: End | None, bits: int) -> bool:
    return low is not None and high is not None and -(1 << bits) < low and high < 1 << bits


def fits(fact: Fact, bits: int) -> bool:
    """Whether a number fits into a whole-number type; a double with a margin for its rounding."""
    if fact.kind == DOUBLE:
        return fact.bounded and fact.size <= 1 << (bits - 1)
    return _fits(fact.low, fact.high, bits)


def _ends(name: str, found: list[Fact], *, whole: bool) -> Ends:
    if not all(f.bounded for f in found):
        return None, None
    corners = [(f.low or 0, f.high or 0) for f in found]
    (a, b), (c, d) = corners[0], corners[-1]
    if len(found) == 1:
        return (-b, -a) if name == "-" else (a, b)
    match name:
        case "+":
            return a + c, b + d
        case "-":
            return a - d, b - c
        case "*":
            at = (a * c, a * d, b * c, b * d)
            return min(at), max(at)
        case "//" if whole:
            return _quotient((a, b), (c, d))
        case "%" if whole:
            reach = min(found[0].size, found[1].size)
            return (0 if a >= 0 else -reach), reach
        case _:
            return None, None


def _quotient(top: tuple[End, End], by: tuple[End, End]) -> Ends:
    """The bounds of a whole quotient, which is no farther from zero than the true quotient."""
    nearest = max(1, by[0], -by[1])
    a, b = top
    reach = -(-max(abs(a), abs(b)) // nearest)
    return (0 if a >= 0 and by[0] >= 0 else -reach), (0 if b <= 0 and by[0] >= 0 else reach)


def _of_units(name: str, found: list[Fact]) -> tuple[int, bool]:
    """Whether a result grows with a unit's rows, or shrinks with them.

    A growing number times a shrinking one does neither.
    """
    if len(found) == 1:
        return (_turned(found[0].many) if name == "-" else found[0].many), found[0].share
    one, other = found
    share = one.share or other.share
    if name in ("/", "//") and other.many:
        return 0, not one.many
    if (name == "*" and one.many and other.share) or (other.many and one.share and name == "*"):
        return 0, False
    if name == "+":
        return one.many | other.many, share
    if name == "-":
        return one.many | _turned(other.many), share
    if name in ("*", "/", "//") and not other.many and (other.low or 0) >= 0 and other.bounded:
        return one.many, share
    return (ABOVE | BELOW if one.many or other.many else 0), share


def _turned(many: int) -> int:
    return (BELOW if many & ABOVE else 0) | (ABOVE if many & BELOW else 0)


def extreme(name: str, found: list[Fact], kind: str) -> Fact:
    """The facts of ``least`` or ``greatest``.

    ``least`` is bounded above if one argument is, and below if all are; ``greatest`` the other way.
    """
    lows, highs = [f.low for f in found], [f.high for f in found]
    if name == "least":
        known = [h for h in highs if h is not None]
        low, high = least(lows), min(known, default=None)
        stopped = ABOVE if any(not f.many & ABOVE and f.high is not None for f in found) else 0
    else:
        known = [low for low in lows if low is not None]
        low, high = max(known, default=None), greatest(highs)
        stopped = BELOW if any(not f.many & BELOW and f.low is not None for f in found) else 0
    many = 0
    for f in found:
        many |= f.many
    return Fact(
        kind, low, high, max(f.bits for f in found), exact=any(f.exact for f in found),
        many=many & ~stopped, share=any(f.share for f in found), shown=all(f.shown for f in found),
    )  # fmt: skip


def adds_exactly(fact: Fact) -> bool:
    """Whether ``FEW`` such doubles add up without rounding: all partial sums are whole doubles."""
    return fact.whole and fact.bounded and fact.size * FEW <= 1 << 53


def sum_bounds(fact: Fact, rows: int) -> Ends:
    """The bounds of a sum of so many numbers. Raises ``Unsafe`` if it may overflow 128 bits."""
    if not fact.bounded:
        return None, None
    low, high = min(0, (fact.low or 0) * rows), max(0, (fact.high or 0) * rows)
    if fact.kind == WHOLE and not _fits(low, high, 127):
        raise Unsafe("a sum that may overflow")
    return low, high
