"""The straight line: from SQL text to a noised, paid-for answer.

Each stage takes one frozen value and returns the next. The pure stages read no private row, so EXPLAIN,
a protocol's Describe and cost previews are just ``prepare``. The effects: match what is stored,
admit what is left to run, reserve its price, execute, add noise, keep, post-process. Engine, ledger, entropy and clock are
arguments; nothing here is global.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from dpsql.checks import run as check
from dpsql.diagnostics.refusal import Ended, LedgerFailed, Refused
from dpsql.engines.guard import Admitted, Guarded
from dpsql.engines.incident import failed
from dpsql.engines.upheld import Upheld
from dpsql.execution import check as check_time
from dpsql.execution import released, take
from dpsql.ledger.accounts import Account
from dpsql.ledger.shortage import check_cap
from dpsql.ledger.store import Hold, Kept, Ledger, Note
from dpsql.plan import search
from dpsql.plan.build import build
from dpsql.plan.empty_groups import EmptyGroups
from dpsql.plan.nodes import Enumerator, Plan
from dpsql.plan.priced import PricedMeasurement, PricedPlan
from dpsql.plan.recall import Piece, pieces
from dpsql.plan.request import Request
from dpsql.plan.stages import SALT
from dpsql.policy.model import QueryLimit
from dpsql.privacy.cost import Cost
from dpsql.privacy.entropy import Randomness
from dpsql.privacy.events import to_json
from dpsql.release.dry_run import dry_run
from dpsql.release.finish import Finishing, finish
from dpsql.release.flights import Flights
from dpsql.release.lookups import Known, known
from dpsql.release.noise import noise
from dpsql.release.postprocess import PostProcessor
from dpsql.release.recall import Outlook, complete, foresee
from dpsql.release.rows import NoisyRows, Release
from dpsql.sql.bind import bind
from dpsql.sql.bind.context import Catalog
from dpsql.sql.parse import Source, parse
from dpsql.sql.render import parameters
from dpsql.sql.suggest import suggested

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Remembrance:
    """A plan with its pieces, what was kept of them, and the release that came of both."""

    priced: PricedPlan
    pieces: tuple[Piece, ...]
    kin: tuple[Kept, ...] = ()
    release: Release | None = None


class Memory(Protocol):
    """Answers that were recalled before."""

    def get(self, key: tuple[int, bool], /) -> Remembrance | None:
        """What is remembered."""
        ...

    def put(self, key: tuple[int, bool], value: Remembrance, /) -> None:
        """Remember it."""
        ...


MOST_ROWS = 10_000
"""Longer answers are not remembered."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What the effects need: where data is, what keeps accounts, where randomness comes from."""

    engine: Guarded
    ledger: Ledger
    entropy: Randomness
    enumerator: Enumerator
    postprocessor: PostProcessor
    memory: Memory | None = None
    flights: Flights = field(default_factory=Flights)
    upheld: Upheld | None = None

    @property
    def finishing(self) -> Finishing:
        """What is needed once everything is noised: public tables, and where SQL over them runs."""
        return Finishing(self.engine, self.postprocessor)


Act = Callable[[], None]


def _at_once() -> None:
    """Wait for nothing."""


@dataclass(frozen=True, slots=True)
class Payer:
    """Who is charged, and what the audit will say about it."""

    accounts: Sequence[Account]
    note: Note
    answers_key: str
    fresh: bool = False
    limit: QueryLimit | None = None
    """What one query may cost; an answer that is recalled costs nothing."""
    wait: Act = _at_once
    """Waits until others may see what was measured: what becomes of a charge is noted after that."""
    later: list[Act] | None = None
    """Where what is noted waits for the end of a question that goes on."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A release and what it cost; ``recalled`` says that it was stored, and cost nothing."""

    release: Release
    cost: Cost
    recalled: bool


def prepare(
    source: Source, catalog: Catalog, request: Request, enumerator: Enumerator
) -> PricedPlan:
    """The pure stages. Raises ``Refused``; depends on text, policy and settings only."""

    def ask(asked: Source) -> PricedPlan:
        return priced(planned(asked, catalog, enumerator), asked, request)

    return with_suggestion(ask, source, catalog)


def with_suggestion(ask: Callable[[Source], Found], source: Source, catalog: Catalog) -> Found:
    """What planning gives; where that is a refusal, it tells the nearest statement that is answered."""
    try:
        return ask(source)
    except Refused as refused:
        raise suggested(refused, source, ask, sorted(catalog.visible)) from None


def planned(
    source: Source, catalog: Catalog, enumerator: Enumerator, empty_groups: EmptyGroups = "auto"
) -> Plan:
    """The pure stages that do not depend on what may be spent."""
    checked = check(bind(parse(source), catalog))
    limits = catalog.policy.limits
    return build(
        checked, enumerator, limits.max_cells,
        strict_timing=limits.strict_timing, empty_groups=empty_groups,
    )  # fmt: skip


def priced(plan: Plan, source: Source, request: Request) -> PricedPlan:
    """The plan with the noise that a request pays for."""
    try:
        return search.priced(plan, request)
    except Refused as refused:
        raise refused.within(source.text) from None


def admit(priced: PricedPlan, tools: Tools) -> None:
    """Every statement that a plan may run passes the check of its engine, or the plan is not used.

    Claim: it depends on the plan and the policy alone; nothing is charged, and no data is read.
    """
    for public in priced.plan.publics:
        tools.engine.admit_public(public.sql)
    for part in priced.parts:
        admit_part(part, tools)
    for asked in priced.searches:
        admit(asked.priced, tools)
    for found in search.extremes(priced):
        admit(found, tools)
    dry_run(priced, tools.postprocessor)


def admit_part(part: PricedMeasurement, tools: Tools) -> Admitted:
    """The lightest statement of a measurement that may run."""
    lighter = None if tools.upheld is None else tools.upheld.statement(part)
    return tools.engine.admit(part.sql, lighter)


def answer(priced: PricedPlan, payer: Payer, tools: Tools, *, intervals: bool) -> Answer:
    """The effects: recall what is stored, measure what is not, then post-process."""
    if not priced.parts:
        release = finish(priced, (), tools.finishing, intervals=intervals)
        return Answer(release, Cost.zero(), recalled=False)
    past = _remembered(priced, payer, tools, intervals=intervals)
    if past.release is not None:
        return Answer(past.release, Cost.zero(), recalled=True)
    outlook = _foreseen(past, tools)
    if outlook.due.parts and (payer.fresh or payer.later is not None):
        return _paid(priced, outlook, payer, tools, intervals=intervals)
    if outlook.due.parts:
        with tools.flights.alone(tuple(piece.family for piece in past.pieces)):
            past = _remembered(priced, payer, tools, intervals=intervals)
            outlook = _foreseen(past, tools)  # somebody may have paid meanwhile
            if outlook.due.parts:
                return _paid(priced, outlook, payer, tools, intervals=intervals)
    with released():
        return _free(past, outlook, tools, intervals=intervals)


def stored(priced: PricedPlan, answers_key: str, tools: Tools) -> Release | None:
    """The answer of a plan from the store alone; None where something would have to be measured."""
    past = Remembrance(priced, pieces(priced, answers_key))
    past = replace(past, kin=kept_of(past.pieces, tools.ledger))
    outlook = _foreseen(past, tools)
    if outlook.due.parts:
        return None
    return finish(priced, complete(priced, outlook, ())[0], tools.finishing, intervals=False)


def _foreseen(past: Remembrance, tools: Tools) -> Outlook:
    return foresee(past.priced, past.pieces, past.kin, tools.ledger.recall, tools.postprocessor)


def _free(past: Remembrance, outlook: Outlook, tools: Tools, *, intervals: bool) -> Answer:
    """The answer from what is stored, remembered until that changes."""
    priced, memory = past.priced, tools.memory
    noisy, _ = complete(priced, outlook, ())
    release = _finished(priced, noisy, tools, intervals=intervals)
    if memory is not None and not priced.plan.publics and release.table.num_rows <= MOST_ROWS:
        memory.put((id(priced), intervals), replace(past, release=release))
    return Answer(release, Cost.zero(), recalled=True)


def _paid(
    priced: PricedPlan, outlook: Outlook, payer: Payer, tools: Tools, *, intervals: bool
) -> Answer:
    """Charge what is due, measure it, and keep it in the transaction that lets it leave."""
    due = outlook.due
    if payer.limit is not None:
        check_cap(payer.limit, due.cost)
    admitted = [(d.priced, admit_part(d.priced, tools)) for d in due.parts]
    public = known(priced, tools.engine, tools.postprocessor)
    events = [to_json(event) for event in due.events]
    for part, _ in admitted:
        _take_room(part)
    check_time()  # what is stopped by now is not charged
    hold = tools.ledger.reserve(payer.accounts, due.cost, events, payer.note, start=True)
    try:
        noisy, keep = complete(priced, outlook, _measured(admitted, public, tools))
    except Ended as ended:  # as if the engine had been stopped: when it was is not told
        _note(payer, lambda: _forfeit(hold, tools))
        raise failed("measure in time", ended) from None
    except BaseException:  # whatever caused it: the engine was asked
        _note(payer, lambda: _forfeit(hold, tools))
        raise
    _note(payer, lambda: tools.ledger.commit(hold, keep))
    with released():
        release = _finished(priced, noisy, tools, intervals=intervals)
    return Answer(release, due.cost, recalled=False)


def _note(payer: Payer, act: Act) -> None:
    """Let the ledger say what became of a charge.

    Claim: where answers leave at multiples of a time, it is seen at one of them, from wherever.
    """
    if payer.later is None:
        payer.wait()
        act()
    else:
        payer.later.append(act)


def _take_room(part: PricedMeasurement) -> None:
    """Count what its public groups will take: what is too large then costs nothing."""
    cells = part.measurement.cells
    if cells is not None:
        take(0, cells.count, len(part.measurement.keys) + len(part.measurement.columns))


def _finished(
    priced: PricedPlan, noisy: tuple[NoisyRows, ...], tools: Tools, *, intervals: bool
) -> Release:
    """The answer from a release that is stored; if it is ended early, that is said."""
    try:
        return finish(priced, noisy, tools.finishing, intervals=intervals)
    except Ended as ended:
        raise ended.with_release() from None


def _remembered(priced: PricedPlan, payer: Payer, tools: Tools, *, intervals: bool) -> Remembrance:
    """The plan's pieces and what is kept of them; the release too, if that is still the same."""
    key, memory = (id(priced), intervals), tools.memory
    known = None if memory is None else memory.get(key)
    if known is None or known.priced is not priced:
        known = Remembrance(priced, pieces(priced, payer.answers_key))
        if memory is not None:
            memory.put(key, known)
    if payer.fresh:
        return replace(known, kin=(), release=None)
    kin = kept_of(known.pieces, tools.ledger)
    return known if kin == known.kin else replace(known, kin=kin, release=None)


def kept_of(wanted: Sequence[Piece], ledger: Ledger) -> tuple[Kept, ...]:
    """All that is kept of these pieces, or may be added up to them."""
    bases = [piece.coarse.base for piece in wanted if piece.coarse is not None]
    return ledger.kin([piece.family for piece in wanted], bases)


def _measured(
    admitted: Sequence[tuple[PricedMeasurement, Admitted]], public: Known, tools: Tools
) -> tuple[NoisyRows, ...]:
    """Every measurement that is due."""
    found = []
    for part, statement in admitted:
        values = dict(public.parameters(statement.sql))
        if SALT in parameters(statement.sql):
            values[SALT] = tools.entropy.bits(63)
        rows = noise(tools.engine.measure(statement, values), part, tools.entropy)
        public.add(rows)
        found.append(rows)
    return tuple(found)


def _forfeit(hold: Hold, tools: Tools) -> None:
    """Close the hold as spent; when even that fails, the next start of the ledger does it."""
    try:
        tools.ledger.forfeit(hold)
    except LedgerFailed:
        return
