"""The states of a hold and its moves between them, as one table without clock or disk.

::

                 +--> cancelled                    (refunded: the engine was not contacted)
    (new) --> reserved --> started --> committed   (spent, answered)
       \\           |          |
        \\          +----------+--> forfeited       (spent, not answered)
         +--> started

A hold counts as spent in every state but ``cancelled``, from the moment it exists. So the states
only record how far a query came. A crash between two of them can lose an answer, never a charge.

A hold in ``started`` is never refunded: whether an engine fails, and when, can depend on data. A
hold whose process died is forfeited, even if it was only reserved. The file cannot distinguish a
process that never contacted the engine from one that did and died before it could write so, unless
every process is trusted to write ``started`` first. The doubt is resolved against the analyst.
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
        """Whether the hold can still change its state."""
        return bool(MOVES[self])


MOVES: dict[State | None, frozenset[State]] = {
    None: frozenset({State.RESERVED, State.STARTED}),
    State.RESERVED: frozenset({State.STARTED, State.FORFEITED, State.CANCELLED}),
    State.STARTED: frozenset({State.COMMITTED, State.FORFEITED}),
    State.COMMITTED: frozenset(),
    State.FORFEITED: frozenset(),
    State.CANCELLED: frozenset(),
}
"""The possible next states of each state; None stands for the time before the hold exists."""


def may(now: State | None, then: State) -> bool:
    """Whether a hold may move from ``now`` to ``then``.

    >>> may(State.STARTED, State.CANCELLED)
    False
    """
    return then in MOVES[now]
