"""Runs searches for bounds before the answers that use the bounds (see ``price.search``).

Claim: whether a search is made, its cost, and the cost of the answer depend on the rows only
    through results that were paid for.
Assumes: ``price.search`` fixes the price of the searches and of the answer before any of them runs.
Argument: the searches are fixed by statement, policy and settings. They are paid and stored like
    any query. The answer's share of the budget is the same whatever they find.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from dpsql.diagnostics.refusal import EngineFailed, Refused
from dpsql.ledger.shortage import check_cap, check_left
from dpsql.pipeline import Act, Payer, admit, answer, answer_from_store
from dpsql.price.priced import PricedPlan
from dpsql.privacy.cost import Cost
from dpsql.release.rows import Release
from dpsql.service.parts import ServiceParts


def with_stored_bounds(base: PricedPlan, service: ServiceParts) -> PricedPlan:
    """The plan under its bounds if all of them are stored, which costs nothing; else ``base``."""
    found = [
        answer_from_store(s.priced, service.policy.answers_key, service.tools)
        for s in base.searches
    ]
    levels = tuple(_level(release) for release in found if release is not None)
    if not base.searches or len(levels) < len(found):
        return base
    return _under(base, levels, service)


@contextmanager
def with_found_bounds(
    base: PricedPlan, payer: Payer, service: ServiceParts
) -> Iterator[tuple[PricedPlan, Cost]]:
    """The plan under bounds that are found now, and the cost of finding them.

    Searches and answer are refused together, before either is paid, if their joint cost is more
    than a query may cost or more than the accounts have left. If answers leave at multiples of a
    time, the outcome of the searches is noted in the ledger after the block, with the answer.
    """
    later: list[Act] | None = None if service.policy.latency is None else []
    again = replace(payer, fresh=False, later=later)  # a bound that is stored is good enough
    try:
        yield _searched(base, again, service)
    finally:
        if later:
            payer.wait()
        for act in later or ():
            act()


def _searched(base: PricedPlan, payer: Payer, service: ServiceParts) -> tuple[PricedPlan, Cost]:
    if not base.searches:
        return base, Cost.zero()
    if payer.cap is not None:
        check_cap(payer.cap, base.most)
    if with_stored_bounds(base, service) is base:
        check_left(service.ledger.balances(payer.accounts), base.price)
    given = [answer(s.priced, payer, service.tools, intervals=False) for s in base.searches]
    cost = sum((one.cost for one in given), Cost.zero())
    return _under(base, tuple(_level(one.release) for one in given), service), cost


def _under(base: PricedPlan, levels: tuple[int, ...], service: ServiceParts) -> PricedPlan:
    """The plan under the bounds that were found, or ``base`` if that plan would be refused.

    Claim: once a search is paid, the answer that it was made for is not refused.
    Assumes: the accounts held enough for both when the search was paid.
    Argument: ``base`` was admitted before. It has the same price, and its bounds hold for all data.
    """
    try:
        found = service.plans.settled(base, levels)
        admit(found, service.tools)
    except (EngineFailed, Refused):
        return base
    return found


def _level(release: Release) -> int:
    """The level that a search found: the one value that it released."""
    return int(release.table.column(0)[0].as_py())
