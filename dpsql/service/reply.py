"""What a statement gives back, for every face to render."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

import pyarrow as pa

from dpsql.ledger.accounts import Holder
from dpsql.policy.types import Kind
from dpsql.privacy.cost import Cost
from dpsql.release.rows import ARROW, OutputColumn


@dataclass(frozen=True, slots=True)
class Remaining:
    """One account, for people: whose it is, what it had, what is spent, what is left, when it renews.

    ``service`` marks the role and the session of a service account that has taken another role.
    """

    account: str
    holder: Holder
    table: str
    service: bool
    epsilon: Fraction
    delta: Fraction
    spent_epsilon: Fraction
    spent_delta: Fraction
    left_epsilon: Fraction
    left_delta: Fraction
    renews: datetime | None


@dataclass(frozen=True, slots=True)
class Reply:
    """Rows with their intervals, what they cost, and what remains.

    ``tag`` is the command's name (SELECT, SET, SHOW, EXPLAIN). ``table`` has one column for each
    of ``columns``, by position. ``intervals`` maps positions to lower and upper ends. ``notes`` say
    what of it is the policy's word and not the data's.
    """

    tag: str
    columns: tuple[OutputColumn, ...]
    table: pa.Table
    intervals: Mapping[int, tuple[pa.Array, pa.Array]] = field(default_factory=dict)
    cost: Cost = field(default_factory=Cost.zero)
    recalled: bool = False
    budget: Callable[[], tuple[Remaining, ...]] = tuple
    notes: tuple[str, ...] = ()
    timely: bool = False
    """Whether the same words may ask something else a moment later: they name the time."""

    tables: frozenset[str] = frozenset()
    """The private tables that it reads: whose accounts pay for it."""

    @property
    def remaining(self) -> tuple[Remaining, ...]:
        """What each account has left, looked up when asked: most clients never do."""
        return self.budget()


def made(tag: str, columns: Sequence[tuple[str, Kind]], rows: Sequence[Sequence[object]]) -> Reply:
    """A reply of dpsql's own making, such as SHOW's."""
    arrays = [
        pa.array([row[i] for row in rows], ARROW[kind]) for i, (_, kind) in enumerate(columns)
    ]
    table = pa.Table.from_arrays(arrays, names=[f"o{i}" for i in range(len(columns))])
    return Reply(tag, tuple(OutputColumn(n, k) for n, k in columns), table)
