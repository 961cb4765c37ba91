"""BEGIN, COMMIT, ROLLBACK and SAVEPOINT, for sessions that never write data.

The states are PostgreSQL's: idle, in a block, in a failed block. A charge stays spent, however the
transaction ends.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from dpsql.memory.pool import Hold
from dpsql.serve.pgwire.errors import ABORTED, NO_SAVEPOINT, NO_TRANSACTION, WireError


class Status(enum.Enum):
    """The state of a transaction, as ReadyForQuery reports it."""

    IDLE = b"I"
    OPEN = b"T"
    FAILED = b"E"


RESTING = {
    Status.IDLE: "idle",
    Status.OPEN: "idle in transaction",
    Status.FAILED: "idle in transaction (aborted)",
}
"""The state that pg_stat_activity shows for a session that carries out no statement."""
_FAILURE = {Status.IDLE: Status.IDLE, Status.OPEN: Status.FAILED, Status.FAILED: Status.FAILED}


@dataclass(frozen=True, slots=True)
class Saved:
    """The state to which a rollback goes back: variables, dpsql's settings, the newest portal."""

    variables: Mapping[str, str]
    settings: object
    newest: int = 0
    holds: tuple[Hold, ...] = ()
    """The holds that count its memory, for savepoints, of which a client may make many."""


@dataclass(slots=True)
class Transaction:
    """The state of one session's transaction."""

    status: Status = Status.IDLE
    before: Saved | None = None
    script: Saved | None = None
    """The state when a script of several statements began, or when a block in it ended last."""
    local: dict[str, str | None] = field(default_factory=dict)
    own: dict[str, object] = field(default_factory=dict)
    """For each of dpsql's own settings that SET LOCAL changed, all settings before the change."""
    savepoints: list[tuple[str, Saved]] = field(default_factory=list)

    def begin(self, now: Saved) -> bool:
        """Open a block. Returns False if one is open already."""
        if self.status is not Status.IDLE:
            return False
        self.status, self.before = Status.OPEN, self.script or now
        return True

    @property
    def lasts(self) -> bool:
        """Whether the transaction has more than one statement."""
        return self.status is not Status.IDLE or self.script is not None

    def failed(self) -> None:
        """Note an error, after which an open block is a failed one."""
        self.status = _FAILURE[self.status]

    def check(self) -> None:
        """Refuse a command in a failed block."""
        if self.status is Status.FAILED:
            raise WireError(
                ABORTED,
                "current transaction is aborted, commands ignored until end of transaction block",
            )

    def finish(self) -> None:
        """End the block, and drop its savepoints."""
        self.status, self.before = Status.IDLE, None
        self.savepoints.clear()

    def save(self, name: str, now: Saved) -> None:
        """Carry out SAVEPOINT."""
        self._inside("SAVEPOINT")
        self.savepoints.append((name, now))
        del self.savepoints[:-1000]

    @property
    def newest(self) -> Saved | None:
        """The state that the newest savepoint has saved; None if there is no savepoint."""
        return self.savepoints[-1][1] if self.savepoints else None

    def release(self, name: str) -> None:
        """Carry out RELEASE: drop this savepoint and later ones."""
        self._inside("RELEASE SAVEPOINT")
        del self.savepoints[self._find(name) :]

    def back_to(self, name: str) -> Saved:
        """Carry out ROLLBACK TO: drop later savepoints, and open a failed block again."""
        self._inside("ROLLBACK TO SAVEPOINT")
        position = self._find(name)
        del self.savepoints[position + 1 :]
        self.status = Status.OPEN
        return self.savepoints[position][1]

    def _inside(self, what: str) -> None:
        if self.status is Status.IDLE:
            raise WireError(NO_TRANSACTION, f"{what} can only be used in transaction blocks")

    def _find(self, name: str) -> int:
        for position in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[position][0] == name:
                return position
        raise WireError(NO_SAVEPOINT, f'savepoint "{name}" does not exist')
