"""The limit on repeated events: which are written one by one, and which are only counted.

Claim: whatever clients do, a log grows by a bounded number of lines per minute: for each kind of
    event that repeats, ``AT_ONCE`` lines of a subject and then ``EACH_MINUTE``, of at most
    ``MOST_SUBJECTS`` subjects. No event is lost without being counted.
Assumes: the clock never goes back.
Argument: each kind and subject has a bucket of ``AT_ONCE`` tokens, refilled at a constant rate. An
    event that finds it empty is counted. The count is written as one event after a minute, or when
    the log is closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpsql.diagnostics.operation.events import Event, Repeated

AT_ONCE, EACH_MINUTE, MOST_SUBJECTS = 200, 20, 1_000
_MINUTE = 60.0


@dataclass(slots=True)
class _Bucket:
    left: float
    seen: float
    counted: int = 0
    since: float = 0.0


class Repeats:
    """The token buckets of one log; for one thread."""

    def __init__(self) -> None:
        """All buckets are full."""
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._swept = 0.0

    def admit(self, event: Event, now: float) -> bool:
        """Whether to write this event; otherwise it is counted. ``now`` is in seconds."""
        if event.repeats is None:
            return True
        bucket = self._bucket(event, now)
        bucket.left = min(AT_ONCE, bucket.left + (now - bucket.seen) * EACH_MINUTE / _MINUTE)
        bucket.seen = now
        if bucket.left >= 1:
            bucket.left -= 1
            return True
        bucket.since = bucket.since if bucket.counted else now
        bucket.counted += 1
        return False

    def _bucket(self, event: Event, now: float) -> _Bucket:
        subject = str(getattr(event, event.repeats)) if event.repeats else ""
        key = event.name(), subject
        if key not in self._buckets and len(self._buckets) >= MOST_SUBJECTS:
            self._forget(now)
            if len(self._buckets) >= MOST_SUBJECTS:
                key = event.name(), ""  # too many subjects: they share a bucket
        return self._buckets.setdefault(key, _Bucket(AT_ONCE, now))

    def _forget(self, now: float) -> None:
        """Drop the buckets that are full again and have no counted events."""
        for key, bucket in list(self._buckets.items()):
            full = bucket.left + (now - bucket.seen) * EACH_MINUTE / _MINUTE >= AT_ONCE
            if full and not bucket.counted:
                del self._buckets[key]

    def take_summaries(self, now: float, *, last: bool = False) -> Iterator[Repeated]:
        """The counts that are at least a minute old; with ``last``, all counts."""
        if not last and now - self._swept < _MINUTE:
            return
        self._swept = now
        for (name, subject), bucket in self._buckets.items():
            if bucket.counted and (last or now - bucket.since >= _MINUTE):
                yield Repeated(name, subject, bucket.counted, now - bucket.since)
                bucket.counted = 0
