"""Reads texts of intervals, as PostgreSQL and drivers write them, as a number of one unit.

The parser reads the first number and unit of ``INTERVAL '1 day 12:00:00'`` and drops the rest. So
such a text is read here before parsing, and replaced by one number of one unit.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

_UNITS: dict[str, tuple[str, int]] = {
    "year": ("month", 12), "quarter": ("month", 3), "month": ("month", 1), "mon": ("month", 1),
    "week": ("day", 7), "day": ("day", 1),
    "hour": ("microsecond", 3_600_000_000), "minute": ("microsecond", 60_000_000),
    "min": ("microsecond", 60_000_000), "second": ("microsecond", 1_000_000),
    "sec": ("microsecond", 1_000_000), "microsecond": ("microsecond", 1),
}  # fmt: skip
_WORDS = "|".join(_UNITS)
_PART = re.compile(rf"\s*([+-]?\d{{1,18}})(?:\.0+)?\s*({_WORDS})s?\b,?")
_CLOCK = re.compile(r"\s*([+-]?)(\d{1,9}):(\d\d)(?::(\d\d)(?:\.0+)?)?")
_PLAIN = re.compile(r"\s*+-?\d++(\.\d++)?\s*+[a-z]*+\s*+", re.IGNORECASE)
_SOME = re.compile(r"\d\s*[a-z]|:", re.IGNORECASE)
_DAY = 86_400
LARGEST = 10**6
"""Numbers from here on are not answered, for any unit."""


def read_interval(text: str) -> tuple[int, str] | None:
    """The number and the unit of an interval; None if it is not a whole number of one unit.

    Days and a time of day are added up in seconds: a day of a timestamp without a zone always has
    24 hours. Months have no fixed length, so they are not combined with days or seconds.

    >>> read_interval("1 day, 12:00:00"), read_interval("2 years 3 mons"), read_interval("1 mon 1 day")
    ((36, 'hour'), (27, 'month'), None)
    """
    totals = {"month": 0, "day": 0, "microsecond": 0}
    at, lower = 0, text.lower().rstrip()
    while (part := _PART.match(lower, at)) is not None:
        unit, size = _UNITS[part[2]]
        totals[unit] += int(part[1]) * size
        at = part.end()
    if (clock := _CLOCK.fullmatch(lower, at)) is not None:
        hours, minutes, seconds = (int(clock[place] or 0) for place in (2, 3, 4))
        since = 3_600 * hours + 60 * minutes + seconds
        totals["microsecond"] += (-since if clock[1] == "-" else since) * 10**6
        at = len(lower)
    seconds, rest = divmod(totals["microsecond"], 10**6)
    months, days = totals["month"], totals["day"]
    if at < len(lower) or not lower or rest or (months and (days or seconds)):
        return None
    count, unit = (
        _whole(days, seconds) if seconds else (months, "month") if months else (days, "day")
    )
    return (count, unit) if abs(count) < LARGEST else None


def _whole(days: int, seconds: int) -> tuple[int, str]:
    total = _DAY * days + seconds
    unit, size = next(
        u for u in (("hour", 3_600), ("minute", 60), ("second", 1)) if not total % u[1]
    )
    return total // size, unit


def whole_intervals(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with each text after INTERVAL of several units replaced by one of one unit."""
    found = list(tokens)
    for at, (word, token) in enumerate(itertools.pairwise(tokens), 1):
        text = token.text
        behind = word.token_type is TokenType.INTERVAL and token.token_type is TokenType.STRING
        if not behind or _PLAIN.fullmatch(text) or not _SOME.search(text):
            continue
        read = read_interval(text)
        place = {"line": token.line, "col": token.col, "start": token.start, "end": token.end}
        # The parser must not cut an unreadable text to its first part. This one is refused.
        whole = "no interval" if read is None else f"{read[0]} {read[1]}"
        found[at] = Token(TokenType.STRING, whole, **place, comments=token.comments)
    return found
