"""The pipeline from SQL text to a noised answer that was paid for.

Each stage takes one frozen value and returns the next. The pure stages read no private row, so
EXPLAIN, a protocol's Describe and cost previews only run ``prepare``. The stages with effects are:
match stored releases, admit the remaining statements, reserve their price, execute, add noise,
merge, commit, finish. Engine, ledger, entropy and clock are arguments; nothing here is global.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from dpsql.checks import run as check
from dpsql.diagnostics.refusal import Ended, LedgerFailed, NotAdmitted, Refused
from dpsql.engines.duckdb.guarded import Admitted, Guarded
from dpsql.engines.duckdb.statements import statement_for
from dpsql.engines.incident import record_incident
from dpsql.engines.public_groups import PublicReader
from dpsql.execution import check as check_time
from dpsql.execution import on_released_values, take
from dpsql.ir.statements import SALT
from dpsql.ledger.accounts import Account
from dpsql.ledger.query_cap import QueryCap
from dpsql.ledger.shortage import check_cap
from dpsql.ledger.store import Hold, Ledger, Note
from dpsql.plan.build import build
from dpsql.plan.empty_groups import EmptyGroups
from dpsql.plan.nodes import Enumerator, Plan
from dpsql.plan.noise_alone import Show
from dpsql.price import search
from dpsql.price.priced import PricedMeasurement, PricedPlan
from dpsql.price.request import Request
from dpsql.privacy.cost import Cost
from dpsql.privacy.entropy import Randomness
from dpsql.privacy.events import to_json
from dpsql.release.dry_run import dry_run
from dpsql.release.finish import Finishing, finish
from dpsql.release.lookups import Known, read_public_tables
from dpsql.release.noise import noise
from dpsql.release.postprocess import PostProcessor
from dpsql.release.rows import NoisyRows, Release
from dpsql.reuse.cached import AnswerCache, CachedAnswer
from dpsql.reuse.consistent import make_consistent
from dpsql.reuse.match import AnswerSources, match_nothing, match_stored
from dpsql.reuse.measured import Due
from dpsql.reuse.merge import merge
from dpsql.reuse.pieces import pieces
from dpsql.reuse.single_flight import SingleFlight
from dpsql.reuse.store import Store
from dpsql.sql.bind import bind
from dpsql.sql.bind.context import Catalog
from dpsql.sql.parse import Source, parse
from dpsql.sql.suggest import suggest_statement

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of the stages with effects: engine, ledger, randomness and post-processor."""

    engine: Guarded
    ledger: Ledger
    entropy: Randomness
    enumerator: Enumerator
    postprocessor: PostProcessor
    answers: AnswerCache = field(default_factory=AnswerCache)
    single_flight: SingleFlight = field(default_factory=SingleFlight)

    @property
    def reader(self) -> PublicReader:
        """The reader of public tables."""
        return PublicReader(self.engine)

    @property
    def finishing(self) -> Finishing:
        """The tools for finishing an answer: the reader of public tables and the post-processor."""
        return Finishing(self.reader, self.postprocessor)


Act = Callable[[], None]


def _at_once() -> None:
    """Wait for nothing."""


@dataclass(frozen=True, slots=True)
class Payer:
    """The accounts that are charged, and the note for the audit."""

    accounts: Sequence[Account]
    note: Note
    answers_key: str
    fresh: bool = False
    cap: QueryCap | None = None
    """The limit on the cost of one query; a recalled answer costs nothing."""
    wait: Act = _at_once
    """Waits until others may see the outcome; the ledger notes it after that."""
    later: list[Act] | None = None
    """Collects the notes for the ledger until the end of a question with several parts."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A release and its cost; ``recalled``: it was stored before, and cost nothing."""

    release: Release
    cost: Cost
    recalled: bool


def prepare(
    source: Source, catalog: Catalog, request: Request, enumerator: Enumerator
) -> PricedPlan:
    """Run the pure stages. May raise ``Refused``. Depends on text, policy and settings only."""

    def ask(asked: Source) -> PricedPlan:
        return price_plan(make_plan(asked, catalog, enumerator), asked, request)

    return with_suggestion(ask, source, catalog)


def with_suggestion(ask: Callable[[Source], Found], source: Source, catalog: Catalog) -> Found:
    """The result of ``ask``; a refusal gets the nearest statement that is answered."""
    try:
        return ask(source)
    except Refused as refused:
        raise suggest_statement(refused, source, ask, sorted(catalog.visible)) from None


def make_plan(
    source: Source, catalog: Catalog, enumerator: Enumerator, empty_groups: EmptyGroups = "auto",
    show: Show = "sensible",
) -> Plan:  # fmt: skip
    """Run the pure stages that do not depend on the budget."""
    checked = check(bind(parse(source), catalog))
    limits = catalog.policy.limits
    return build(
        checked, enumerator, limits.max_cells,
        strict_timing=limits.strict_timing, empty_groups=empty_groups, show=show,
    )  # fmt: skip


def price_plan(plan: Plan, source: Source, request: Request) -> PricedPlan:
    """The plan, priced for a request."""
    try:
        return search.price_with_searches(plan, request)
    except Refused as refused:
        raise refused.within(source.text) from None


def admit(priced: PricedPlan, tools: Tools) -> None:
    """Let every statement that a plan may run pass the check of its engine; raise if one fails.

    Claim: the outcome depends on the plan and the policy alone; nothing is charged, and no data is
        read.
    Assumes: the second check judges text and policy alone (``engines.duckdb.guard``).
    Argument: the ledger is not called, and each call here admits a statement without running it.
    """
    for public in priced.plan.publics:
        tools.reader.admit_public(public)
    for part in priced.parts:
        admit_part(part, tools)
    for asked in priced.searches:
        admit(asked.priced, tools)
    for found in search.extremes(priced):
        admit(found, tools)
    dry_run(priced, tools.postprocessor, _finish)


def admit_part(part: PricedMeasurement, tools: Tools) -> Admitted:
    """The cheapest statement of a measurement that may run, admitted."""
    return tools.engine.admit(statement_for(part))


def admit_sources(
    priced: PricedPlan, sources: AnswerSources, tools: Tools
) -> tuple[AnswerSources, tuple[Admitted, ...]]:
    """The admitted statements of the due measurements, and the sources that they are for.

    A plan of which a part is stored needs other statements for the rest. If one of them is not
    admitted, that is an incident for the operator, and everything is measured by the statements of
    the plan, which were admitted before.

    Claim: no question is refused here after it has paid for a search.
    Assumes: ``admit`` has admitted the plan before.
    Argument: if a statement for the rest is not admitted, the statements of the whole plan run,
        which were admitted.
    """
    try:
        return sources, _statements(sources, tools)
    except NotAdmitted:
        whole = match_nothing(priced, [source.piece for source in sources.pieces])
        if whole.due == sources.due:
            raise
    return whole, _statements(whole, tools)


def _statements(sources: AnswerSources, tools: Tools) -> tuple[Admitted, ...]:
    return tuple(admit_part(due.priced, tools) for due in sources.due.parts)


def answer(priced: PricedPlan, payer: Payer, tools: Tools, *, intervals: bool) -> Answer:
    """Answer a priced plan: from the store if possible, else by the measurements that are due.

    If something is due, a question is matched, admitted, reserved, executed, noised, merged,
    committed and finished, each once.
    """
    if not priced.parts:
        release = _finish(priced, (), tools.finishing, intervals=intervals)
        return Answer(release, Cost.zero(), recalled=False)
    seen = tools.single_flight.finished
    cached = tools.answers.load(priced, payer.answers_key, intervals=intervals)
    cached = cached.without_related() if payer.fresh else cached.with_related(tools.ledger)
    if cached.release is not None:
        return Answer(cached.release, Cost.zero(), recalled=True)
    with _match_alone(cached, seen, payer, tools) as (cached, sources):
        if sources.due.parts:
            return _pay(priced, sources, payer, tools, intervals=intervals)
    with on_released_values():
        return _recall(cached, sources, tools, intervals=intervals)


def answer_from_store(priced: PricedPlan, answers_key: str, tools: Tools) -> Release | None:
    """The answer of a plan from the store alone; None if something would have to be measured."""
    sources = match(priced, answers_key, tools)
    if sources.due.parts:
        return None
    return _finish(priced, merge(priced, sources, ())[0], tools.finishing, intervals=False)


def match(
    priced: PricedPlan, answers_key: str, tools: Tools, *, fresh: bool = False
) -> AnswerSources:
    """The sources of which an answer would be made now. Nothing is spent."""
    cached = CachedAnswer(priced, pieces(priced, answers_key))
    return _find_sources(cached if fresh else cached.with_related(tools.ledger), tools)


@contextmanager
def _match_alone(
    cached: CachedAnswer, seen: int, payer: Payer, tools: Tools
) -> Iterator[tuple[CachedAnswer, AnswerSources]]:
    """The sources of an answer; if something is due, no other session pays for it meanwhile."""
    sources = _find_sources(cached, tools)
    if payer.fresh or payer.later is not None or not sources.due.parts:
        yield cached, sources
        return
    question = tuple(piece.family for piece in cached.pieces)
    with tools.single_flight.hold(question, seen) as changed:
        if changed:  # another session may have paid for it
            cached = cached.with_related(tools.ledger)
            sources = _find_sources(cached, tools)
        yield cached, sources


def _find_sources(cached: CachedAnswer, tools: Tools) -> AnswerSources:
    store = Store(cached.priced, cached.related, tools.ledger.recall, tools.postprocessor)
    return match_stored(store, cached.pieces)


def _recall(
    cached: CachedAnswer, sources: AnswerSources, tools: Tools, *, intervals: bool
) -> Answer:
    """The answer from stored releases, cached until these change."""
    noisy, _ = merge(cached.priced, sources, ())
    release = _finish_stored(cached.priced, noisy, tools.finishing, intervals=intervals)
    tools.answers.store(cached, release, intervals=intervals)
    return Answer(release, Cost.zero(), recalled=True)


def _pay(
    priced: PricedPlan, sources: AnswerSources, payer: Payer, tools: Tools, *, intervals: bool
) -> Answer:
    """Charge what is due, measure it, and store it in the transaction that lets it leave."""
    sources, statements = admit_sources(priced, sources, tools)
    due = sources.due
    public = read_public_tables(priced, tools.reader, tools.postprocessor)
    parts = [part.priced for part in due.parts]
    hold = _reserve(due, payer, tools)
    try:
        noisy, new = merge(priced, sources, measure(parts, statements, public, tools))
    except Ended as ended:  # reported as a stopped engine, so that its time is not revealed
        _note(payer, lambda: _forfeit(hold, tools))
        raise record_incident("measure in time", ended) from None
    except BaseException:  # whatever the cause, the engine may have been contacted
        _note(payer, lambda: _forfeit(hold, tools))
        raise
    _note(payer, lambda: tools.ledger.commit(hold, new))
    with on_released_values():
        release = _finish_stored(
            priced, noisy, Finishing(public, tools.postprocessor), intervals=intervals
        )
    return Answer(release, due.cost, recalled=False)


def _reserve(due: Due, payer: Payer, tools: Tools) -> Hold:
    """Charge what is due, once only the engine can still fail."""
    if payer.cap is not None:
        check_cap(payer.cap, due.cost)
    for part in due.parts:
        _take_room(part.priced)
    events = [to_json(event) for event in due.events]
    check_time()  # a statement that was stopped by now is not charged
    return tools.ledger.reserve(payer.accounts, due.cost, events, payer.note, start=True)


def measure(
    parts: Sequence[PricedMeasurement], statements: Sequence[Admitted], public: Known, tools: Tools
) -> tuple[NoisyRows, ...]:
    """Execute the statement of each measurement, and add its noise. It charges nothing."""
    found = []
    for part, statement in zip(parts, statements, strict=True):
        values = dict(public.values_of(statement.parameters))
        if SALT in statement.parameters:
            values[SALT] = tools.entropy.bits(63)
        rows = noise(tools.engine.measure(statement, values), part, tools.entropy)
        public.add(rows)
        found.append(rows)
    return tuple(found)


def _note(payer: Payer, act: Act) -> None:
    """Note the outcome of a charge in the ledger.

    Claim: where answers leave at multiples of a time, the outcome becomes visible at a multiple, to
        any observer.
    Assumes: the time after the wait depends on released values only.
    Argument: the note waits for the multiple, or is left to the caller that waits for it.
    """
    if payer.later is None:
        payer.wait()
        act()
    else:
        payer.later.append(act)


def _take_room(part: PricedMeasurement) -> None:
    """Count the memory of the public groups, so that an answer that is too large costs nothing."""
    cells = part.measurement.cells
    if cells is not None:
        take(0, cells.count, len(part.measurement.keys) + len(part.measurement.columns))


def _finish_stored(
    priced: PricedPlan, noisy: tuple[NoisyRows, ...], tools: Finishing, *, intervals: bool
) -> Release:
    """The answer from a stored release; if it is stopped, the error says that it is stored."""
    try:
        return _finish(priced, noisy, tools, intervals=intervals)
    except Ended as ended:
        raise ended.with_release() from None


def _finish(
    priced: PricedPlan, noisy: tuple[NoisyRows, ...], tools: Finishing, *, intervals: bool
) -> Release:
    """The answer from released tables, made consistent if the request asks for it."""
    if priced.consistent:
        noisy = make_consistent(priced, noisy, tools.postprocessor.run)
    return finish(priced, noisy, tools, intervals=intervals)


def _forfeit(hold: Hold, tools: Tools) -> None:
    """Close the hold as spent; if this fails, the ledger does it when it is next opened."""
    try:
        tools.ledger.forfeit(hold)
    except LedgerFailed:
        return
