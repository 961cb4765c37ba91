"""The straight line: from SQL text to a noised, paid-for answer.

Each stage takes one frozen value and returns the next. The pure stages read no data, so EXPLAIN,
a protocol's Describe and cost previews are just ``prepare``. Engine, ledger, entropy and clock are
arguments; nothing here is global.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dpsql.checks import run as check
from dpsql.diagnostics.refusal import LedgerFailed, Refused
from dpsql.engines.engine import Engine
from dpsql.ledger.accounts import Account
from dpsql.ledger.shortage import check_cap
from dpsql.ledger.store import Hold, Kept, Ledger, Note, RecallKey
from dpsql.plan.build import build
from dpsql.plan.nodes import Enumerator
from dpsql.plan.price import price
from dpsql.plan.priced import PricedPlan
from dpsql.plan.recall import Identity, identity
from dpsql.plan.request import Request
from dpsql.plan.stages import SALT
from dpsql.policy.model import QueryLimit
from dpsql.privacy.cost import Cost
from dpsql.privacy.entropy import Randomness
from dpsql.privacy.events import to_json
from dpsql.release.finish import Finishing, finish
from dpsql.release.lookups import known
from dpsql.release.noise import noise
from dpsql.release.postprocess import PostProcessor
from dpsql.release.rows import NoisyRows, Release
from dpsql.release.stored import recalled, to_bytes
from dpsql.sql.bind import bind
from dpsql.sql.bind.context import Catalog
from dpsql.sql.parse import Source, parse
from dpsql.sql.render import parameters


class Memory(Protocol):
    """Answers that were recalled before."""

    def get(self, key: tuple[int, bool], /) -> Remembrance | None:
        """What is remembered."""
        ...

    def put(self, key: tuple[int, bool], value: Remembrance, /) -> None:
        """Remember it."""
        ...


Remembrance = tuple[PricedPlan, Kept, Release]
"""A plan, the stored release that answered it, and what came of both."""
MOST_ROWS = 10_000
"""Longer answers are not remembered."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What the effects need: where data is, what keeps accounts, where randomness comes from."""

    engine: Engine
    ledger: Ledger
    entropy: Randomness
    enumerator: Enumerator
    postprocessor: PostProcessor
    memory: Memory | None = None

    @property
    def finishing(self) -> Finishing:
        """What is needed once everything is noised: public tables, and where SQL over them runs."""
        return Finishing(self.engine, self.postprocessor, self.entropy)


@dataclass(frozen=True, slots=True)
class Payer:
    """Who is charged, and what the audit will say about it."""

    accounts: Sequence[Account]
    note: Note
    policy_version: str
    fresh: bool = False
    limit: QueryLimit | None = None
    """What one query may cost; an answer that is recalled costs nothing."""


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
    parsed = parse(source)
    bound = bind(parsed, catalog)
    checked = check(bound)
    plan = build(checked, enumerator, catalog.policy.limits.max_cells)
    try:
        return price(plan, request)
    except Refused as refused:
        raise refused.within(source.text) from None


def answer(priced: PricedPlan, payer: Payer, tools: Tools, *, intervals: bool) -> Answer:
    """The effects: recall or measure, then post-process."""
    wanted = identity(priced, payer.policy_version)
    kept = None if payer.fresh or not priced.parts else recallable(wanted, tools.ledger)
    again = None if kept is None else _again(priced, kept, tools, intervals=intervals)
    if again is not None:
        return Answer(again, Cost.zero(), recalled=True)
    if not priced.parts:
        release = finish(priced, (), tools.finishing, intervals=intervals)
        return Answer(release, Cost.zero(), recalled=False)
    if payer.limit is not None:
        check_cap(payer.limit, priced.cost)
    events = [to_json(event) for event in priced.events]
    hold = tools.ledger.reserve(payer.accounts, priced.cost, events, payer.note, start=True)
    noisy = _measured(priced, hold, tools)
    key = RecallKey(wanted.key, wanted.family, wanted.noise)
    tools.ledger.commit(hold, to_bytes(noisy), key)
    release = finish(priced, noisy, tools.finishing, intervals=intervals)
    return Answer(release, priced.cost, recalled=False)


def _again(priced: PricedPlan, kept: Kept, tools: Tools, *, intervals: bool) -> Release | None:
    """The answer that a stored release gives; None if it was removed meanwhile."""
    key, memory = (id(priced), intervals), tools.memory
    known = None if memory is None else memory.get(key)
    if known is not None and known[0] is priced and known[1] == kept:
        return known[2]
    stored = tools.ledger.recall(kept.key.key)
    if stored is None:
        return None
    release = finish(priced, recalled(stored, priced), tools.finishing, intervals=intervals)
    if memory is not None and not priced.plan.publics and release.table.num_rows <= MOST_ROWS:
        memory.put(key, (priced, kept, release))
    return release


def recallable(wanted: Identity, ledger: Ledger) -> Kept | None:
    """The best stored release that is at least as good as what is wanted."""
    found = [kept for kept in ledger.kin(wanted.family) if wanted.served_by(kept.key.noise)]
    return min(found, key=lambda kept: sum(kept.key.noise), default=None)


def _measured(priced: PricedPlan, hold: Hold, tools: Tools) -> tuple[NoisyRows, ...]:
    """Every measurement of the plan; a failure forfeits the hold, whatever caused it."""
    try:
        found = []
        public = known(priced, tools.engine, tools.postprocessor)
        for part in priced.parts:
            values = dict(public.parameters(part.sql))
            if SALT in parameters(part.sql):
                values[SALT] = tools.entropy.bits(63)
            rows = noise(tools.engine.measure(part.sql, values), part, tools.entropy)
            public.add(rows)
            found.append(rows)
        return tuple(found)
    except BaseException:
        _forfeit(hold, tools)
        raise


def _forfeit(hold: Hold, tools: Tools) -> None:
    """Close the hold as spent; when even that fails, the next start of the ledger does it."""
    try:
        tools.ledger.forfeit(hold)
    except LedgerFailed:
        return
