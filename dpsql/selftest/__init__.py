"""An end-to-end audit: does an answer betray more than it is charged for?

The real pipeline answers questions about two synthetic databases that differ by one person in
each of a thousand cells, and a statistical test asks how well the answers tell the two apart.

Claim: a finding says that answers were not as private as charged, wrong with probability at most
    ``ALPHA`` over a whole run. No finding proves nothing: it is a lower bound.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np

from dpsql.diagnostics.refusal import EngineFailed, Refused
from dpsql.engines.duckdb import DuckDB
from dpsql.engines.scratch import made
from dpsql.ledger.open import open_ledger
from dpsql.policy.model import Policy, Table
from dpsql.selftest.bound import ABSENT, NULL, Samples, lower_bound
from dpsql.selftest.copies import CELLS, SCENARIOS, WIDE, WIDE_DELTA, Scenario, derived, statements
from dpsql.selftest.questions import Question, questions
from dpsql.service import Service, Session

ALPHA = 1e-3
EPSILON = 1.0
LEAST_ANSWERS, MOST_ANSWERS = 2, 200
Stopwatch = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Finding:
    """One question about one scenario: what epsilon is at least, of ``EPSILON`` charged."""

    table: str
    scenario: str
    question: str
    bound: float
    samples: int
    shape: str = ""
    """What differed beside values: an error, columns, types; empty for nothing."""

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against the charge."""
        return not self.shape and self.bound <= EPSILON


@dataclass(slots=True)
class Side:
    """One database, and what it answered."""

    session: Callable[[str], Session]
    samples: list[Samples] = field(default_factory=list)
    shapes: set[str] = field(default_factory=set)
    faults: set[str] = field(default_factory=set)

    def ask(self, question: Question) -> bool:
        """Ask once more; False where it is refused."""
        session = self.session(question.role)
        try:
            session.execute(f"SET dpsql.mechanism = '{question.mechanism}'")
            session.execute("SET dpsql.fresh = on")
            reply = session.execute(question.sql)
        except Refused as refused:
            self.shapes.add(str(refused))
            return False
        except EngineFailed:
            self.faults.add("the engine failed")
            return False
        keys = reply.table.column(0).to_pylist()
        if keys != sorted(keys):
            self.faults.add("rows are not in the order of their keys")
        if reply.cost.epsilon < Fraction(EPSILON) * Fraction(99, 100):
            self.faults.add("less was charged than was asked for")
        self.shapes.add(f"{reply.table.schema}")
        self.samples.append(_values(keys, reply.table.column(-1).to_pylist()))
        return True


def _values(names: Sequence[object], values: Sequence[float | None]) -> Samples:
    """What each cell shows."""
    found = np.full(CELLS, ABSENT)
    keys = [int(str(k).lstrip("w")) for k in names]
    shown = [NULL if v is None else float(v) for v in values]
    found[np.array(keys, dtype=np.int64) - 1] = shown
    return found


def run(
    policy: Policy, seconds: float, *, watch: Stopwatch = time.monotonic,
    wanted: Callable[[Table, Scenario, Question], bool] = lambda *_: True,
) -> Iterator[Finding]:  # fmt: skip
    """The findings, one after the other, in about so many seconds."""
    tables = [t for t in policy.tables.values() if t.unit is not None]
    plan = [
        (table, scenario, [q for q in questions(policy, table) if wanted(table, scenario, q)])
        for scenario in SCENARIOS
        for table in tables
    ]
    left, end = sum(len(asked) for _, _, asked in plan), watch() + seconds
    alpha = ALPHA / max(1, left)
    for table, scenario, asked in plan:
        with tempfile.TemporaryDirectory(prefix="dpsql-selftest-") as place, ExitStack() as open_:
            pair = _pair(policy, table, scenario, Path(place), open_) if asked else []
            for question in asked:
                until = watch() + (end - watch()) / left
                yield _found(table, scenario, question, pair, until, alpha, watch)
                left -= 1


def _pair(
    policy: Policy, table: Table, scenario: Scenario, place: Path, stack: ExitStack
) -> list[Service]:
    """A service over the copy with the person, and one over the copy without."""
    services = []
    for name, without in (("with", False), ("without", True)):
        (place / name).mkdir()
        copy = derived(policy, place / name, table.name)
        made(copy.source.path, statements(copy, copy.tables[table.name], scenario, without=without))
        engine = DuckDB(copy.source.path, copy.limits)
        service = Service(copy, engine, open_ledger(copy, _clock))
        services.append(stack.enter_context(service))
    return services


def _clock() -> datetime:
    return datetime.now(UTC)


def _found(
    table: Table, scenario: Scenario, question: Question, pair: list[Service], until: float,
    alpha: float, watch: Stopwatch,
) -> Finding:  # fmt: skip
    one, other = (Side(service.session) for service in pair)
    for count in range(MOST_ANSWERS):
        if count >= LEAST_ANSWERS and watch() > until:
            break
        if not all([one.ask(question), other.ask(question)]):
            break
    delta = WIDE_DELTA if question.role == WIDE else 0.0
    faults = sorted(one.faults | other.faults)
    if one.shapes != other.shapes:
        faults.append("errors, columns or types differ")
    shape = "; ".join(faults)
    samples = sum(map(len, one.samples))
    bound = 0.0
    if samples and len(one.samples) == len(other.samples):
        bound = lower_bound(
            np.concatenate(one.samples), np.concatenate(other.samples), delta, alpha
        )
    return Finding(table.name, scenario.name, question.name, bound, samples, shape)
