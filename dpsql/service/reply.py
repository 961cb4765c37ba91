"""The reply to a statement, as every face gets it to render."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction

import pyarrow as pa

from dpsql.ledger.accounts import Holder
from dpsql.policy.types import Kind
from dpsql.privacy.cost import Cost
from dpsql.release.rows import ARROW, OutputColumn


@dataclass(frozen=True, slots=True)
class Remaining:
    """The balance of one account: its holder, total, spent and left budget, and its next renewal.

    ``spent_rho``, ``rho`` (the limit) and ``left_rho`` are None for an account that does not compose in zCDP.
    ``in_rho`` says that the questions of the session are priced in rho.
    ``service`` marks the role account and the session account of a service account that has taken
    another role.
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
    spent_rho: Fraction | None = None
    rho: Fraction | None = None
    left_rho: Fraction | None = None
    in_rho: bool = False

    @property
    def left(self) -> str:
        """What is left, in words."""
        said = (
            f"epsilon {float(self.left_epsilon):.6g} of {float(self.epsilon):.6g}, "
            f"delta {float(self.left_delta):.3g} of {float(self.delta):.3g}"
        )
        if self.rho is None or self.left_rho is None:
            return said
        return f"{said}, rho {float(self.left_rho):.6g} of {float(self.rho):.6g}"


@dataclass(frozen=True, slots=True)
class Reply:
    """Rows with their intervals, their cost, and the remaining budget.

    ``tag`` is the command's name (SELECT, SET, SHOW, EXPLAIN). ``table`` has one column for each
    of ``columns``, by position. ``intervals`` maps positions to lower and upper ends. ``notes`` say
    which parts of the answer come from the policy and not from the data, and what it may leave out.
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
    """Whether the statement reads the current time, so that its text may ask for something else
    later."""

    noise_alone: bool = False
    """Whether values, rows or groups may be cut before noise is added. Intervals do not include that."""

    tables: frozenset[str] = frozenset()
    """The private tables that the statement reads. Their accounts are charged for it."""

    @property
    def remaining(self) -> tuple[Remaining, ...]:
        """The balance of each account. It is looked up only here, since most clients never ask."""
        return self.budget()


def made(tag: str, columns: Sequence[tuple[str, Kind]], rows: Sequence[Sequence[object]]) -> Reply:
    """A reply with rows that dpsql makes itself, such as that of SHOW."""
    arrays = [
        pa.array([row[i] for row in rows], ARROW[kind]) for i, (_, kind) in enumerate(columns)
    ]
    table = pa.Table.from_arrays(arrays, names=[f"o{i}" for i in range(len(columns))])
    return Reply(tag, tuple(OutputColumn(n, k) for n, k in columns), table)


def with_interval_columns(reply: Reply) -> Reply:
    """The reply with ``<name>_low`` and ``<name>_high`` after each column that has an interval."""
    columns, arrays = [], []
    for i, column in enumerate(reply.columns):
        columns.append(column)
        arrays.append(reply.table.column(i))
        if i in reply.intervals:
            for word, end in zip(("low", "high"), reply.intervals[i], strict=True):
                columns.append(OutputColumn(f"{column.name}_{word}", Kind.DOUBLE))
                arrays.append(end)
    table = pa.Table.from_arrays(arrays, names=[f"o{i}" for i in range(len(columns))])
    return replace(reply, columns=tuple(columns), table=table)
