"""Limits the work of planning one statement, counted in steps.

A step is about a microsecond of one processor. Steps are counted where work is done, not by a
clock, so the same text is always planned or always refused, however busy the machine is. A result
that is remembered from another statement is counted as if it were computed here, so a refusal does
not depend on earlier statements. A result that one statement needs several times is counted once.
Where steps are counted, a thread also notices that its execution is to end.

Python runs one thread at a time. So only one of the large statements is planned at full speed, and
the others wait a little at each look until it is their turn. A small statement then shares the
processor with one large statement, however many there are. No statement waits for a lock, so no
deadlock is possible.

Claim: planning reads no private row and charges nothing, so it may be stopped anywhere.
Assumes: the listing of public groups reads public tables only (``engines.public_groups``).
Argument: the stages that count steps get a text, the policy and a clock. The ledger, and the engine
    for private rows, are arguments of later stages.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.execution import check, rest

MOST_STEPS = 1_200_000
"""The most steps of one statement.

A list of 10,000 values takes less; other statements of the corpora take a tenth.
"""
BETWEEN_LOOKS = 5_000
"""Steps between two looks at whether the execution is to end."""
LIGHT = 50_000
"""The first steps, which every statement takes at full speed."""
PAUSE = 0.05
"""Seconds for which a statement waits at each look while another one has its turn."""
_TURN = threading.Lock()


class _Effort:
    """The steps that are left for one statement, which one thread plans."""

    __slots__ = ("counted", "floor", "left", "look_below", "turn")

    def __init__(self) -> None:
        self.left, self.floor, self.turn = MOST_STEPS, 0, False
        self.counted = set[Hashable]()
        self.look_below = self.left - BETWEEN_LOOKS

    def look(self) -> None:
        """Raise if the execution is to end or too many steps were counted; set the next look."""
        check()
        if self.left < self.floor:
            raise Refused(_too_much())
        if not self.turn and self.left < MOST_STEPS - LIGHT:
            self.turn = _TURN.acquire(blocking=False)
            if not self.turn:
                rest(PAUSE)
        self.look_below = max(self.floor, self.left - BETWEEN_LOOKS)


class _Current(threading.local):
    effort: _Effort | None = None
    total: int = 0


_CURRENT = _Current()


@contextmanager
def limit_effort() -> Iterator[None]:
    """Limit the steps of this thread in the ``with`` block; nested blocks count in the outer."""
    if _CURRENT.effort is not None:
        yield
        return
    effort = _CURRENT.effort = _Effort()
    try:
        yield
    except RecursionError:
        raise Refused(_too_deep()) from None
    finally:
        _CURRENT.effort = None
        if effort.turn:
            _TURN.release()


def step(count: int = 1) -> None:
    """Count steps. Raises ``Refused`` for too many, and ``Stopped`` if the execution is to end."""
    _CURRENT.total += count
    effort = _CURRENT.effort
    if effort is not None:
        effort.left -= count
        if effort.left < effort.look_below:
            effort.look()


def total() -> int:
    """The steps that this thread has counted in all statements; differences measure work."""
    return _CURRENT.total


def count_known(what: Hashable, steps: int) -> None:
    """Count the steps that a remembered result took, once for each statement."""
    effort = _CURRENT.effort
    if effort is not None and what not in effort.counted:
        effort.counted.add(what)
        step(steps)


def note_known(what: Hashable) -> None:
    """Note that a result was computed for this statement, which counted its steps."""
    if _CURRENT.effort is not None:
        _CURRENT.effort.counted.add(what)


@contextmanager
def limit_part(steps: int) -> Iterator[None]:
    """Limit the steps in the ``with`` block to this many; ``step`` raises ``Refused`` for more."""
    effort = _CURRENT.effort
    if effort is None:
        with limit_effort(), limit_part(steps):
            yield
        return
    before, effort.floor = effort.floor, max(effort.floor, effort.left - steps)
    effort.look_below = max(effort.floor, effort.look_below)
    try:
        yield
    finally:
        effort.floor = before


@contextmanager
def pause_counting() -> Iterator[None]:
    """Do not count the steps in the ``with`` block, whose work depends on facts about the data.

    That work must be bounded by work that is counted.
    """
    effort, _CURRENT.effort = _CURRENT.effort, None
    try:
        yield
    finally:
        _CURRENT.effort = effort


def is_planning() -> bool:
    """Whether this thread plans a statement now."""
    return _CURRENT.effort is not None


def _too_deep() -> Refusal:
    return Refusal(
        "DP115",
        "the statement is nested too deeply",
        "Planning goes through the statement level by level. Each condition joined by AND is a "
        "level, and so is each WITH query that reads another one.",
        "Use IN for lists of values, and fewer subqueries inside one another.",
    )


def _too_much() -> Refusal:
    return Refusal(
        "DP115",
        "planning this statement takes too much work",
        "Every expression is read, priced, written as SQL and checked a second time, often for several"
        " measurements. This work is limited, so that no statement keeps others waiting.",
        "Ask for fewer aggregates, keys or CASE branches at once, or compute long expressions once in a"
        " subquery in FROM.",
    )
