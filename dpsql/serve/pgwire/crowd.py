"""The sessions of an endpoint as one of them sees them: its own, and which of them it may stop.

A session sees what the same login has opened; one that has taken another role sees those that have
taken the same. Nobody is shown what somebody else asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

LONGEST_SHOWN = 1_024
"""Characters of a statement in pg_stat_activity, as PostgreSQL has it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One session as pg_stat_activity shows it; moments are seconds since 1970."""

    process: int
    login: str
    taken: str | None
    database: str
    application: str
    address: str | None
    port: int | None
    begun: float
    asked: float | None
    changed: float
    state: str
    text: str
    home: object = None
    """Whose log-in it is: another policy may have one of the same name."""


class Crowd(Protocol):
    """Who is connected."""

    def seen(self) -> Sequence[Seen]:
        """Every session that has logged in."""
        ...

    def holds(self, process: int) -> bool:
        """Whether a session has this number."""
        ...

    def stop(self, process: int, *, ends: bool) -> None:
        """Cancel what a session runs, or end the session."""
        ...


class Nobody:
    """A crowd of none: faces without connections of their own."""

    def seen(self) -> Sequence[Seen]:
        """No session."""
        return ()

    def holds(self, process: int) -> bool:  # noqa: ARG002 (the crowd's signature)
        """No session has one."""
        return False

    def stop(self, process: int, *, ends: bool) -> None:
        """There is nobody to stop."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session stands in the crowd."""

    process: int = 0
    crowd: Crowd = field(default_factory=Nobody)
    settings: Callable[[], Mapping[str, str]] = dict
    """The session's variables as they are now."""

    def own(self) -> list[Seen]:
        """The sessions that this one may see."""
        everyone = self.crowd.seen()
        mine = next((s for s in everyone if s.process == self.process), None)
        return [s for s in everyone if mine is not None and _sees(mine, s)]

    def stop(self, process: int, *, ends: bool) -> bool:
        """Stop a session of its own; False for any other number, whether or not it is another's."""
        if all(s.process != process for s in self.own()):
            return False
        self.crowd.stop(process, ends=ends)
        return True


def _sees(mine: Seen, theirs: Seen) -> bool:
    if theirs.home is not mine.home or theirs.login != mine.login:
        return False
    return mine.taken is None or theirs.taken == mine.taken
