"""The power-of-two grid on which values become integers before the engine adds them.

Claim: every value that leaves the generated expression lies in ``low .. high`` of the grid,
whatever the column holds: NULL gives NULL, infinities the nearer bound, and NaN the upper one.
Assumes: the engine has the doubles of IEEE 754, and orders NaN above all numbers.
Argument: the CASE of ``ir.statements.Steps`` compares with the bounds before it converts, so the
conversion sees only finite values between them. ``floor(x * 2**shift + 0.5)`` never falls as x
rises, since none of its operations does in IEEE doubles. It maps a whole number of at most
``2**MOST_BITS`` steps to itself, and so a value between two whole numbers of steps to a whole
number between them. Integers are then summed exactly, as integers or as doubles that are integers
(``rewrite.shortcut``). These operations give the same results in every engine, while ``round`` does
not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpsql.catalog.statistic import Total
from dpsql.effort import step
from dpsql.exact import float_down, float_up
from dpsql.policy.types import Kind, digits_of

FINE_BITS = 24
"""Half of a value's range is about ``2**FINE_BITS`` grid steps."""
MANY_BITS = 27
"""The rounding errors of ``2**MANY_BITS`` decimals add up to less than half of their last digit."""
MOST_BITS = 42
"""No value exceeds ``2**MOST_BITS`` grid steps, so that weighted values and their sums fit."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A total's values in steps of ``2**-shift``: bounds and centre as integers."""

    shift: int
    low: int
    high: int
    centre: int

    @property
    def reach(self) -> int:
        """The most that one row adds, in grid steps."""
        return max(abs(self.low - self.centre), abs(self.high - self.centre), 1)


def grid(total: Total, coarser: int = 0) -> Grid:
    """The grid of a total, with ``coarser`` bits fewer, or more bits if ``coarser`` is negative.

    >>> from dpsql.ir.expressions import integer
    >>> grid(Total(integer(1), Fraction(0), Fraction(500))).shift
    17
    >>> grid(Total(integer(1), Fraction(18), Fraction(100), whole=True)).shift
    0
    """
    step(100)
    shift = _shift(total) - coarser
    low, high = grid_ends(total)
    scale = Fraction(2) ** shift
    return Grid(
        shift,
        math.floor(Fraction(low) * scale),
        math.ceil(Fraction(high) * scale),
        round(total.centre * scale),
    )


def last_digit(total: Total) -> Fraction | None:
    """The value of the last decimal digit of a total; None where its values are not decimals."""
    digits = digits_of(total.value.shape.type_name)
    return None if digits is None else Fraction(1, 10 ** digits[1])


def finer(total: Total) -> int:
    """How many bits finer a grid must be to keep the last digit of sums of decimals; else 0.

    >>> from dpsql.ir.expressions import integer
    >>> finer(Total(integer(1), Fraction(0), Fraction(500)))
    0
    """
    digit = last_digit(total)
    if digit is None:
        return 0
    largest = _log2_up(max(abs(total.low), abs(total.high), digit))
    wanted = min(_log2_up(1 / digit) + MANY_BITS, MOST_BITS - largest)
    return max(0, wanted - _shift(total))


def grid_ends(total: Total) -> tuple[float, float]:
    """The bounds as the doubles that the engine compares with; they include the declared range."""
    return float_down(total.low), float_up(total.high)


def _shift(total: Total) -> int:
    size = max(abs(total.low), abs(total.high), Fraction(1, 2**900))
    largest = _log2_up(size)
    if total.whole:
        return min(0, MOST_BITS - largest)
    half = max((total.high - total.low) / 2, size / 2**FINE_BITS)
    return min(FINE_BITS + total.extra_bits - _log2_up(half) + 1, MOST_BITS - largest)


def _log2_up(value: Fraction) -> int:
    """The smallest n with value <= 2**n."""
    n = value.numerator.bit_length() - value.denominator.bit_length()
    return n if value <= Fraction(2) ** n else n + 1  # value lies strictly between 2**(n +- 1)


def is_whole(total: Total, at: Grid) -> bool:
    """Whether values are whole numbers, and the grid's step is one."""
    return total.value.shape.kind is Kind.INTEGER and at.shift == 0
