"""What BEGIN, COMMIT, ROLLBACK and SAVEPOINT mean where nothing is ever written.

The states are PostgreSQL's: idle, in a block, in a failed block. What a charge has cost stays
spent whatever becomes of the transaction.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from dpsql.memory.pool import Hold
from dpsql.serve.pgwire.errors import ABORTED, NO_SAVEPOINT, NO_TRANSACTION, WireError


class Status(enum.Enum):
    """As ReadyForQuery reports it."""

    IDLE = b"I"
    OPEN = b"T"
    FAILED = b"E"


RESTING = {
    Status.IDLE: "idle",
    Status.OPEN: "idle in transaction",
    Status.FAILED: "idle in transaction (aborted)",
}
"""What pg_stat_activity says of a session that carries nothing out."""
_FAILURE = {Status.IDLE: Status.IDLE, Status.OPEN: Status.FAILED, Status.FAILED: Status.FAILED}


@dataclass(frozen=True, slots=True)
class Saved:
    """What a rollback goes back to: session variables, dpsql's settings, and the newest portal."""

    variables: Mapping[str, str]
    settings: object
    newest: int = 0
    holds: tuple[Hold, ...] = ()
    """Count its memory, where a client may save many."""


@dataclass(slots=True)
class Transaction:
    """The state of one session's transaction."""

    status: Status = Status.IDLE
    before: Saved | None = None
    script: Saved | None = None
    """Where a script of several statements began, or went on when a transaction in it ended."""
    local: dict[str, str | None] = field(default_factory=dict)
    own: dict[str, object] = field(default_factory=dict)
    """What SET LOCAL of dpsql's own settings goes back to: all of them, as they were before."""
    savepoints: list[tuple[str, Saved]] = field(default_factory=list)

    def begin(self, now: Saved) -> bool:
        """Open a block; False when one is open already."""
        if self.status is not Status.IDLE:
            return False
        self.status, self.before = Status.OPEN, self.script or now
        return True

    @property
    def lasts(self) -> bool:
        """Whether more than one statement belongs to it."""
        return self.status is not Status.IDLE or self.script is not None

    def failed(self) -> None:
        """An error happened."""
        self.status = _FAILURE[self.status]

    def check(self) -> None:
        """Most commands are refused in a failed block."""
        if self.status is Status.FAILED:
            raise WireError(
                ABORTED,
                "current transaction is aborted, commands ignored until end of transaction block",
            )

    def finish(self) -> None:
        """Back to idle."""
        self.status, self.before = Status.IDLE, None
        self.savepoints.clear()

    def save(self, name: str, now: Saved) -> None:
        """SAVEPOINT."""
        self._inside("SAVEPOINT")
        self.savepoints.append((name, now))
        del self.savepoints[:-1000]

    @property
    def newest(self) -> Saved | None:
        """What was saved last."""
        return self.savepoints[-1][1] if self.savepoints else None

    def release(self, name: str) -> None:
        """RELEASE: this savepoint and later ones are gone."""
        self._inside("RELEASE SAVEPOINT")
        del self.savepoints[self._find(name) :]

    def back_to(self, name: str) -> Saved:
        """ROLLBACK TO: later savepoints are gone, and a failed block is whole again."""
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
