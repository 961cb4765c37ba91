"""The sessions of an endpoint that one of them may see and stop.

A session sees the sessions of its own login. If it has taken another role, it sees only those of
them that have taken the same role. No session sees statements of another login.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

LONGEST_SHOWN = 1_024
"""The most characters of a statement in pg_stat_activity, as in PostgreSQL."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One session as pg_stat_activity shows it. Times are in seconds since 1970."""

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
    """The endpoint to which the login belongs, as another policy may have a login of that name."""


class Crowd(Protocol):
    """All sessions of an endpoint."""

    def seen(self) -> Sequence[Seen]:
        """All sessions that have logged in."""
        ...

    def holds(self, process: int) -> bool:
        """Whether a session has this number."""
        ...

    def stop(self, process: int, *, ends: bool) -> None:
        """Cancel the statement that a session runs, or end the session."""
        ...


class Nobody:
    """A crowd without sessions, for faces that have no connections of their own."""

    def seen(self) -> Sequence[Seen]:
        """No sessions."""
        return ()

    def holds(self, process: int) -> bool:  # noqa: ARG002 (the crowd's signature)
        """Always False."""
        return False

    def stop(self, process: int, *, ends: bool) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Place:
    """A session's place among all sessions: its number, the others, and its variables."""

    process: int = 0
    crowd: Crowd = field(default_factory=Nobody)
    settings: Callable[[], Mapping[str, str]] = dict
    """Returns the current variables of the session."""

    def own(self) -> list[Seen]:
        """The sessions that this one may see."""
        everyone = self.crowd.seen()
        mine = next((s for s in everyone if s.process == self.process), None)
        return [s for s in everyone if mine is not None and _sees(mine, s)]

    def stop(self, process: int, *, ends: bool) -> bool:
        """Stop a session that this one may see. Returns False for any other number.

        The result does not tell whether another login has a session of that number.
        """
        if all(s.process != process for s in self.own()):
            return False
        self.crowd.stop(process, ends=ends)
        return True


def _sees(mine: Seen, theirs: Seen) -> bool:
    if theirs.home is not mine.home or theirs.login != mine.login:
        return False
    return mine.taken is None or theirs.taken == mine.taken
