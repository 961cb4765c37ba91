"""The life of a hold, as one table. No clock, no disk: stores apply it, tests walk it.

::

                 +--> cancelled                    (refunded: the engine was not contacted)
    (new) --> reserved --> started --> committed   (spent, answered)
       \\           |          |
        \\          +----------+--> forfeited       (spent, not answered)
         +--> started

A hold counts as spent in every state but ``cancelled``, from the moment it exists. So the states
only record how far a query came; a crash between two of them can lose an answer, never a charge.

``started`` has no way back to a refund: whether an engine fails, and when, can depend on data.
A hold whose process died is forfeited, and so is one that was only reserved: the file cannot tell
"never contacted the engine" from "contacted it, and died before it could say so" unless every
process is trusted to write ``started`` first, and the doubt is resolved against the analyst.
"""

from __future__ import annotations

import enum


class State(enum.StrEnum):
    """How far a query came."""

    RESERVED = "reserved"
    STARTED = "started"
    COMMITTED = "committed"
    FORFEITED = "forfeited"
    CANCELLED = "cancelled"

    @property
    def spent(self) -> bool:
        """Whether a hold in this state counts against its accounts."""
        return self is not State.CANCELLED

    @property
    def open(self) -> bool:
        """Whether something can still happen to the hold."""
        return bool(MOVES[self])


MOVES: dict[State | None, frozenset[State]] = {
    None: frozenset({State.RESERVED, State.STARTED}),
    State.RESERVED: frozenset({State.STARTED, State.FORFEITED, State.CANCELLED}),
    State.STARTED: frozenset({State.COMMITTED, State.FORFEITED}),
    State.COMMITTED: frozenset(),
    State.FORFEITED: frozenset(),
    State.CANCELLED: frozenset(),
}
"""Which states follow which; None is before the hold exists."""


def may(now: State | None, then: State) -> bool:
    """Whether a hold may go from ``now`` to ``then``.

    >>> may(State.STARTED, State.CANCELLED)
    False
    """
    return then in MOVES[now]
