"""The public grid on which values are counted before one is chosen by its rank.

Claim: every value that leaves the generated expression is a bin, 0 .. count - 1, whatever the
column holds, or NULL for NULL.
Assumes: the engine has the doubles of IEEE 754, and orders NaN above all numbers.
Argument: the CASE compares a value with the bounds before it computes, so that differences and
quotients are of values between them. Values below the bounds go to the first bin, values above
them, NaN among these, to the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction

from dpsql.catalog.statistic import Mode, Ranked
from dpsql.exact import float_down, float_up
from dpsql.ir.expressions import Shape
from dpsql.plan.nodes import Cells
from dpsql.policy.types import Kind, Scalar

MOST_BINS = 1 << 16
MOST_ROWS = 1 << 22
"""The most bins of all public groups together, since an engine may have to send all of them."""
UNKNOWN_GROUPS = 1 << 10
"""How many groups are expected where their number is not public."""
NARROWEST = Fraction(1, 2**900)
"""A range of doubles that is narrower than this is one bin."""
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (naive by design)
_MICROSECOND = timedelta(microseconds=1)
_GRAINS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


@dataclass(frozen=True, slots=True)
class Buckets:
    """Bins of ``width`` from ``origin`` on, in whole numbers, days or microseconds, or in doubles.

    ``last`` is the highest whole value. It is None for bins of a continuous range. Whole values are
    multiples of ``grain``, counted from ``origin``.
    """

    kind: Kind
    origin: Fraction
    width: Fraction
    count: int
    last: int | None = None
    grain: int = 1
    members: tuple[Scalar, ...] | None = None
    """Listed values: each has a bin of its own, and other values have none."""


def buckets(statistic: Ranked, cells: Cells | None) -> Buckets:
    """The bins of a statistic: one for each value where values are few, else bins of equal width.

    >>> from dpsql.ir.expressions import integer
    >>> from dpsql.catalog.statistic import Quantile
    >>> buckets(Quantile(integer(1), 18, 100, Fraction(1, 2)), None).count
    83
    """
    if isinstance(statistic, Mode) or statistic.members is not None:
        return _each(statistic)
    groups = UNKNOWN_GROUPS if cells is None else max(1, cells.count)
    most = max(64, min(MOST_BINS, MOST_ROWS // groups))
    shape = statistic.value.shape
    kind, low, high = shape.kind, statistic.low, statistic.high
    if kind is Kind.DOUBLE and not shape.domain.integral:
        return _continuous(*numbers_of(low, high), most)
    grain = _grain(shape, low)
    first, last, steps = _steps(kind, low, high, grain)
    each = -(-steps // most)
    return Buckets(
        kind, Fraction(first), Fraction(each * grain), -(-steps // each), max(first, last), grain
    )


def _steps(kind: Kind, low: Scalar, high: Scalar, grain: int) -> tuple[int, int, int]:
    """Both ends as whole numbers, and how many steps there are."""
    first, last = _position(low, kind), _position(high, kind)
    return first, last, max(0, last - first) // grain + 1


def _each(statistic: Ranked) -> Buckets:
    """A bin for each value."""
    kind, members = statistic.value.shape.kind, statistic.members
    if members is not None:
        return Buckets(kind, Fraction(0), Fraction(1), len(members), None, 1, members)
    assert statistic.low is not None
    assert statistic.high is not None, "checks.bounded_values lets no other pass"
    grain = _grain(statistic.value.shape, statistic.low)
    first, last, steps = _steps(kind, statistic.low, statistic.high, grain)
    return Buckets(kind, Fraction(first), Fraction(grain), steps, max(first, last), grain)


def numbers_of(low: Scalar, high: Scalar) -> tuple[Fraction, Fraction]:
    """Both ends of a range of numbers."""
    return Fraction(low), Fraction(high)  # type: ignore[arg-type]


def _continuous(low: Fraction, high: Fraction, most: int) -> Buckets:
    if high - low < NARROWEST:
        return Buckets(Kind.DOUBLE, low, Fraction(0), 1)
    return Buckets(Kind.DOUBLE, low, (high - low) / most, most)


def _position(value: Scalar, kind: Kind) -> int:
    """A value as a whole number: itself, or days or microseconds since 1970."""
    if kind is Kind.DATE:
        assert isinstance(value, date)
        return (date(value.year, value.month, value.day) - EPOCH.date()).days
    if kind is Kind.TIMESTAMP:
        assert isinstance(value, date)
        at = value if isinstance(value, datetime) else datetime.combine(value, EPOCH.time())
        return (at - EPOCH) // _MICROSECOND
    return int(numbers_of(value, value)[0])


def _grain(shape: Shape, low: Scalar) -> int:
    """The step between truncated timestamps, if the range begins at one; else 1."""
    size = _GRAINS.get(shape.domain.grain or "", 1) if shape.kind is Kind.TIMESTAMP else 1
    return size if _position(low, shape.kind) % size == 0 else 1


def bucket_ends(statistic: Ranked, at: Buckets) -> tuple[Scalar, Scalar]:
    """The ends that the engine compares values with. As doubles they include the declared range."""
    assert statistic.low is not None
    assert statistic.high is not None
    if at.kind is not Kind.DOUBLE:
        return statistic.low, statistic.high
    low, high = numbers_of(statistic.low, statistic.high)
    if at.last is not None:
        low, high = at.origin, Fraction(at.last)
    return Fraction(float_down(low)), Fraction(float_up(high))
