"""A service's caches of priced plans, and of plans under the bounds that searches found.

Both kinds are pure functions of their keys, so a cache changes nothing but the time that it saves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from datetime import datetime

from dpsql.memory.cache import Cache
from dpsql.memory.pool import Use
from dpsql.policy.types import Scalar
from dpsql.price.priced import PricedPlan
from dpsql.price.search import with_found
from dpsql.service.settings import Settings

MOST_PLANS = 512
LONGEST_TEXT = 20_000


class ObservedClock(datetime):
    """A time that records whether any of its attributes was read."""

    asked = False

    def __getattribute__(self, name: str) -> object:
        """Reading any attribute counts."""
        if name not in ("asked", "__class__", "__dict__"):
            object.__setattr__(self, "asked", True)
        return super().__getattribute__(name)


def moment(now: datetime) -> ObservedClock:
    """The same time, as one that records whether it is read."""
    return ObservedClock(
        now.year, now.month, now.day, now.hour, now.minute, now.second, now.microsecond, now.tzinfo
    )


class PlanCache:
    """Priced plans by role, settings, text and parameters, under one policy.

    A statement whose plan depends on the current time is not cached: it is planned anew each time.
    """

    def __init__(self) -> None:
        """Both caches are empty at first."""
        self._plans = Cache[Hashable, PricedPlan](Use.CACHED_PLANS, MOST_PLANS)
        self._settled = Cache[Hashable, tuple[PricedPlan, PricedPlan]](Use.CACHED_PLANS, MOST_PLANS)

    def plan(
        self,
        about: tuple[Hashable, Settings, str, Sequence[Scalar | float | None]],
        now: datetime,
        make: Callable[[datetime], PricedPlan],
    ) -> PricedPlan:
        """The plan for ``about`` (role, settings, text, parameters), made if it is not cached."""
        role, settings, text, parameters = about
        if len(text) > LONGEST_TEXT:
            return make(now)
        values = tuple((type(v).__name__, repr(v)) for v in parameters)
        key = role, settings, text, values
        found = self._plans.get(key)
        if found is None:
            watched = moment(now)
            found = make(watched)
            if not watched.asked:
                self._plans.put(key, found)
        return found

    def settled(self, base: PricedPlan, values: tuple[float, ...]) -> PricedPlan:
        """The plan ``base`` with ``values``, which its searches found."""
        key = id(base), values
        found = self._settled.get(key)
        if found is None or found[0] is not base:
            found = base, with_found(base, values)
            self._settled.put(key, found)
        return found[1]
