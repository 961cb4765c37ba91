"""Domains: the public knowledge about a value, as an interval or as a finite set of values.

A domain is a statement about *declared* values. It is used to price a query. It never replaces the
clamp that the engine applies, because a declaration may be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from functools import reduce
from typing import Any

from dpsql.effort import step
from dpsql.policy.types import Scalar


@dataclass(frozen=True, slots=True)
class Domain:
    """Values between ``low`` and ``high`` (None: unbounded), or only ``members`` if given.

    ``integral`` says that every value is whole, whatever the type; ``grain`` that a date or a
    timestamp is the start of a period of that name; ``longest`` that a text has no more characters.
    """

    low: Scalar | None = None
    high: Scalar | None = None
    members: tuple[Scalar, ...] | None = None
    integral: bool = False
    grain: str | None = None
    longest: int | None = None

    @property
    def bounded(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None

    @property
    def empty(self) -> bool:
        """Whether no value is possible."""
        if self.members is not None:
            return not self.members
        return self.bounded and _above(self.low, self.high)


ANYTHING = Domain()


def interval(low: Scalar | None, high: Scalar | None, *, integral: bool = False) -> Domain:
    """Everything from ``low`` to ``high``."""
    return Domain(low, high, integral=integral)


def whole_numbers(low: Fraction | None, high: Fraction | None) -> Domain:
    """Whole numbers of 64 bits between two ends.

    A result beyond 64 bits is NULL, so no end is beyond them. Otherwise repeated squaring would
    double the number of digits of the ends each time.
    """
    first = None if low is None else min(max(math.floor(low), -(2**63)), 2**63 - 1)
    last = None if high is None else min(max(math.ceil(high), -(2**63)), 2**63 - 1)
    return interval(first, last, integral=True)


def members(values: Iterable[Scalar]) -> Domain:
    """Exactly these values. ``low`` and ``high`` are the least and the greatest of them.

    >>> members([3, 1, 3]).members
    (1, 3)
    """
    unique = tuple(sorted(set(values), key=_comparable))
    step(len(unique))
    if not unique:
        return Domain(members=())
    whole = all(isinstance(v, int) for v in unique)
    if isinstance(unique[0], str):
        return Domain(members=unique)
    return Domain(unique[0], unique[-1], members=unique, integral=whole)


def numbers(domain: Domain) -> tuple[Fraction | None, Fraction | None]:
    """The ends as exact numbers (None for an open end, and for values that are no numbers)."""
    return _number(domain.low), _number(domain.high)


def nearest(
    ends: tuple[Fraction | None, Fraction | None],
) -> tuple[Fraction | None, Fraction | None]:
    """The ends rounded to doubles. An end beyond every double is open.

    >>> nearest((Fraction(1, 2), Fraction(10) ** 400))
    (Fraction(1, 2), None)
    """
    return _nearest(ends[0]), _nearest(ends[1])


def _nearest(value: Fraction | None) -> Fraction | None:
    try:
        return None if value is None else Fraction(float(value))
    except OverflowError:
        return None


def hull(first: Domain, second: Domain) -> Domain:
    """The smallest domain that holds both.

    >>> hull(interval(0, 5), interval(3, 9))
    Domain(low=0, high=9, members=None, integral=False, grain=None, longest=None)
    """
    if first.empty or second.empty:
        return second if first.empty else first
    if first.members is not None and second.members is not None:
        return members(first.members + second.members)
    low = _pick(first.low, second.low, smaller=True)
    high = _pick(first.high, second.high, smaller=False)
    return Domain(
        low,
        high,
        integral=first.integral and second.integral,
        grain=first.grain if first.grain == second.grain else None,
        longest=_longer(longest(first), longest(second)),
    )


def hull_of(domains: Sequence[Domain]) -> Domain:
    """The smallest domain that holds all of these. Sets of members are united in one step.

    >>> hull_of([members([1]), interval(5, 9), members([2, 3])])
    Domain(low=1, high=9, members=None, integral=False, grain=None, longest=None)
    """
    listed = [d for d in domains if d.members is not None]
    if len(listed) > 1:
        together = members(v for d in listed for v in d.members or ())
        domains = [together, *(d for d in domains if d.members is None)]
    return reduce(hull, domains)


def longest(domain: Domain) -> int | None:
    """The most characters that a text has; None if that is not known.

    >>> longest(members(["web", "shop"]))
    4
    """
    if domain.members is None:
        return domain.longest
    return max((len(v) for v in domain.members if isinstance(v, str)), default=0)


def _longer(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else max(a, b)


def at_least(domain: Domain, bound: Scalar) -> Domain:
    """The part that is not below ``bound``."""
    if domain.members is not None:
        return _kept(domain, lambda v: not _above(bound, v))
    low = bound if domain.low is None or _above(bound, domain.low) else domain.low
    return replace(domain, low=low)


def at_most(domain: Domain, bound: Scalar) -> Domain:
    """The part that is not above ``bound``."""
    if domain.members is not None:
        return _kept(domain, lambda v: not _above(v, bound))
    high = bound if domain.high is None or _above(domain.high, bound) else domain.high
    return replace(domain, high=high)


def among(domain: Domain, values: Iterable[Scalar]) -> Domain:
    """The part that is one of ``values``."""
    return members(v for v in values if _holds(domain, v))


def without(domain: Domain, value: Scalar) -> Domain:
    """The part that is not ``value``."""
    if domain.members is None:
        return domain
    return _kept(domain, lambda v: _comparable(v) != _comparable(value))


def _holds(domain: Domain, value: Scalar) -> bool:
    if domain.members is not None:
        return _comparable(value) in map(_comparable, domain.members)
    below = domain.low is not None and _above(domain.low, value)
    return not below and not (domain.high is not None and _above(value, domain.high))


def _kept(domain: Domain, keep: Callable[[Scalar], bool]) -> Domain:
    """The domain of the members for which ``keep`` is true, with the same grain."""
    return replace(members(filter(keep, domain.members or ())), grain=domain.grain)


def _number(value: Scalar | None) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        return None
    return Fraction(value)


def _pick(a: Scalar | None, b: Scalar | None, *, smaller: bool) -> Scalar | None:
    if a is None or b is None:
        return None
    return a if _above(b, a) == smaller else b


def _comparable(value: Any) -> Any:
    """A value to compare with: of a date its midnight, of a Fraction the nearest double."""
    if isinstance(value, Fraction):
        return _nearest(value) or value
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 (naive by design)
    return value


def _above(a: Scalar | None, b: Scalar | None) -> bool:
    return bool(_comparable(a) > _comparable(b))
