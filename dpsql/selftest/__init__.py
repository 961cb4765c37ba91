"""An end-to-end audit: do answers reveal more than the ledger says?

The real pipeline answers questions about two synthetic databases that differ by one person in each
of thousands of cells. A statistical test measures how well the answers distinguish the two
databases.

Claim: a finding states that answers were not as private as charged. The probability of a wrong
    finding is at most ``ALPHA`` over a whole run. A run without findings proves nothing: it only
    gives lower bounds on epsilon.
Assumes: the exact numbers of a statement without random parameters do not change from one run to
    the next. So they are computed once, and the noise is drawn anew each time.
Argument: a finding about one question is wrong with probability at most its share of ``ALPHA``
    (``selftest.bound``), and the shares of all questions add up to at most ``ALPHA``.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

from dpsql.engines.duckdb import copies as prepared
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.engines.duckdb.made_data import write_table
from dpsql.engines.duckdb.scratch import made
from dpsql.engines.facts import Facts
from dpsql.engines.lookups import SourceEngine
from dpsql.engines.repeated import Repeated
from dpsql.engines.verify import verify
from dpsql.ledger.open import open_ledger
from dpsql.policy.model import Policy
from dpsql.selftest.bound import Claim, Found, alpha_of_end, lower_bound
from dpsql.selftest.copies import derive_policy, made_tables
from dpsql.selftest.matrix import matrix
from dpsql.selftest.power import Power, least_noticed
from dpsql.selftest.probes import PREPARED
from dpsql.selftest.questions import Question, of_table
from dpsql.selftest.scenarios import ALL, Scenario
from dpsql.selftest.side import Side, claims_of
from dpsql.selftest.unanswered import explain_refusal
from dpsql.service import Service

ALPHA = 1e-6
SAMPLES = 100_000
MOST_CELLS, FEWEST_CELLS = 34_000, 1_000
_FIRST = datetime(2025, 1, 1, tzinfo=UTC)
_USUAL = 0.4
"""Seconds for a question about ``MOST_CELLS`` cells: its sides are prepared and asked twice."""
_LEAST = 0.1
"""The least seconds that a question takes."""
_TOGETHER = 80
"""The number of questions in one piece of work for a process."""
Wanted = Callable[[Scenario, Question], bool]
_Asked = tuple[Scenario, Question]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one question in one scenario: a lower bound on epsilon, and the charge."""

    table: str
    scenario: str
    question: str
    bound: float
    charged: Claim
    samples: int
    shape: str = ""
    """Differences other than of values: an error, columns, types, the charge; empty for none."""
    unanswered: str = ""
    """The refusal, if the question was refused."""
    explained: str = ""
    """Why this policy may refuse the question."""
    power: Power | None = None
    """The smallest faults that it would have noticed; None if it was not answered."""

    @property
    def passed(self) -> bool:
        """Whether the question was answered, or need not be, and nothing disproves the charge."""
        told = not self.shape and self.bound <= self.charged.epsilon
        return told and (bool(self.explained) or (self.samples > 0 and not self.unanswered))

    @property
    def said(self) -> str:
        """What is wrong, or why it was not answered; empty if it was answered and passed."""
        if self.shape or self.bound > self.charged.epsilon:
            return self.shape or "more than the charge"
        if self.explained:
            return f"not answered under this policy ({self.unanswered}): {self.explained}"
        return f"not answered: {self.unanswered or 'no samples'}" if not self.passed else ""


@dataclass(frozen=True, slots=True)
class _Work:
    """Some questions in one scenario, for one process."""

    policy: Policy
    scenario: Scenario
    questions: tuple[Question, ...]
    samples: int
    cells: int
    seconds: float
    alpha: float


def run(
    policy: Policy, samples: int = SAMPLES, *, seconds: float = math.inf, jobs: int = 1,
    wanted: Wanted = lambda *_: True,
) -> Iterator[Finding]:  # fmt: skip
    """The findings of a policy, in the order of scenarios.

    A limit of ``seconds`` means fewer samples, from fewer cells. If there is no time even for
    these, each question is asked in some of its scenarios only, in rotation.
    """
    works = list(_works(policy, samples, seconds * jobs, wanted))
    if jobs == 1:
        for work in works:
            yield from _findings(work)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for found in pool.map(_listed, works):
            yield from found


def list_questions(policy: Policy) -> Iterator[tuple[Scenario, Question]]:
    """Every question, with each of its scenarios."""
    tables = [t for t in policy.tables.values() if t.unit is not None]
    questions = [q for table in tables for q in of_table(policy, table)] + list(matrix())
    for scenario in ALL:
        yield from ((scenario, q) for q in questions if scenario in q.scenarios)


def _works(policy: Policy, samples: int, seconds: float, wanted: Wanted) -> Iterator[_Work]:
    chosen = _within([pair for pair in list_questions(policy) if wanted(*pair)], seconds)
    each = 1 / max(1, len(chosen))
    cells = min(MOST_CELLS, max(2, samples // 4 * 2))
    if seconds < math.inf:
        timely = int(MOST_CELLS * seconds * each / _USUAL) // 2 * 2  # cells may be paired
        cells = min(cells, max(FEWEST_CELLS, timely))
    for scenario in ALL:
        mine = [question for s, question in chosen if s == scenario]
        for start in range(0, len(mine), _TOGETHER):
            some = tuple(mine[start : start + _TOGETHER])
            share = seconds * each * len(some)
            yield _Work(policy, scenario, some, samples, cells, share, ALPHA * each)


def _within(pairs: list[_Asked], seconds: float) -> list[_Asked]:
    """As many scenarios of each question as there is time for, at least one, in rotation."""
    if len(pairs) * _LEAST <= seconds:
        return pairs
    scenarios: dict[Question, list[Scenario]] = {}
    for scenario, question in pairs:
        scenarios.setdefault(question, []).append(scenario)
    few = max(1, int(seconds / _LEAST / len(scenarios)))
    kept = {
        (scenario, question)
        for turn, (question, each) in enumerate(scenarios.items())
        for scenario in (each * 2)[turn % len(each) :][: min(few, len(each))]
    }
    return [pair for pair in pairs if pair in kept]


def _listed(work: _Work) -> list[Finding]:
    return list(_findings(work))


def _findings(work: _Work) -> Iterator[Finding]:
    end, cells = time.monotonic() + work.seconds, work.cells
    with tempfile.TemporaryDirectory(prefix="dpsql-selftest-") as place, ExitStack() as stack:
        days = _Days()
        pair = _pair(work, cells, Path(place), stack, days)
        for at, question in enumerate(work.questions):
            days.pass_on()
            now = time.monotonic()
            until = now + (end - now) / (len(work.questions) - at)
            yield _found(work, question, pair, cells, until)


def _pair(work: _Work, cells: int, place: Path, stack: ExitStack, clock: _Days) -> list[Service]:
    """A service over the copy with the person, and one over the copy without the person."""
    services, texts = [], [question.sql for question in work.questions]
    for name, without in (("with", False), ("without", True)):
        (place / name).mkdir()
        copy = derive_policy(work.policy, place / name, cells)
        tables = made_tables(copy, work.scenario, texts, cells, without=without)
        made(copy.source.path, map(write_table, tables))
        if any(PREPARED in text for text in texts):
            prepared.prepare(replace(copy, tables={PREPARED: copy.tables[PREPARED]}), [PREPARED])
        opened = DuckDB(copy.source.path, copy.limits, prepared.place(copy))
        engine = Repeated(opened, max(1, work.samples))
        ledger, facts = open_ledger(copy, clock), _verified(copy, engine)
        service = Service(copy, engine, ledger, clock=clock, facts=facts)
        services.append(stack.enter_context(service))
    return services


def _verified(copy: Policy, engine: SourceEngine) -> Facts:
    """Verify the declarations on the synthetic data, for the tables that were made."""
    source = engine.describe()
    made = {
        name: replace(
            table,
            foreign_keys=tuple(k for k in table.foreign_keys if k.references in source.tables),
        )
        for name, table in copy.tables.items()
        if name in source.tables
    }
    policy = replace(copy, tables=made)
    return verify(policy, source, engine, prepared.read(policy, engine.prepared)[0])


@dataclass(slots=True)
class _Days:
    """A clock that advances by a day for every question, so that accounts are renewed."""

    now: datetime = _FIRST

    def __call__(self) -> datetime:
        return self.now

    def pass_on(self) -> None:
        self.now += timedelta(days=1)


def _found(
    work: _Work, question: Question, pair: list[Service], cells: int, until: float
) -> Finding:
    most = min(question.cells or cells, cells)
    beside = work.scenario.beside
    one, other = (Side(service, question, most, beside=beside) for service in pair)
    wished = work.samples // question.share
    times = math.ceil(wished / (most // 2 if beside else most))
    if question.cells is not None:
        times = min(times, question.askings)
    asked = 0
    while asked < times and (asked < 2 or time.monotonic() < until):
        asked += 1
        if not all([one.ask(), other.ask()]):
            break
        if asked == 1 and one.charge[1] > 0:  # no more often than the delta of the copy allows
            times = min(
                times, math.floor(float(pair[0].policy.dataset.delta) / one.charge[1] + 1e-6)
            )
    faults, found = _faults(one, other), Found(0.0, claims_of(one.charge)[0])
    samples = [column for side in (one, other) for column in side.columns[:1]]
    count, power = len(samples[0]) if samples else 0, None
    if len(samples) == 2 and len(samples[0]) == len(samples[1]):
        claims = claims_of(min(one.charge, other.charge))
        found = lower_bound(one.columns, other.columns, claims, work.alpha)
        power = _power(count, len(one.columns), claims, found.plain, work.alpha)
    refused = one.refused or other.refused
    return Finding(
        question.table, work.scenario.name, question.name, found.bound, found.claim, count, faults,
        f"{refused.code}: {refused.headline}" if refused else "",
        explain_refusal(work.policy, refused.code) if refused else "", power,
    )  # fmt: skip


def _power(
    samples: int, columns: int, claims: tuple[Claim, ...], shown: float, alpha: float
) -> Power | None:
    """The faults that this many samples would notice, for the first claim, the charge itself."""
    epsilon, delta = claims[0].epsilon, claims[0].delta
    if epsilon <= 0:
        return None
    end = alpha_of_end(alpha, columns, len(claims))
    return Power(epsilon, shown, least_noticed(samples, epsilon, delta, end))


def _faults(one: Side, other: Side) -> str:
    faults = sorted(one.faults | other.faults)
    if one.shapes != other.shapes:
        faults.append("errors, columns or types differ")
    if one.charge != other.charge:
        faults.append("the charges differ")
    return "; ".join(faults)
