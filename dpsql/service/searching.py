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
    """The plan under its limits if all of them are stored, which costs nothing; else ``base``."""
    plan = base
    while plan.searches:
        stored = [
            answer_from_store(s.priced, service.policy.answers_key, service.tools)
            for s in plan.searches
        ]
        found = tuple(_value(release) for release in stored if release is not None)
        if len(found) < len(stored):
            return base
        following = _after(plan, found, service)
        if following is plan:
            return base
        plan = following
    return plan


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
    plan, cost = base, Cost.zero()
    while plan.searches:
        given = [answer(s.priced, payer, service.tools, intervals=False) for s in plan.searches]
        cost += sum((one.cost for one in given), Cost.zero())
        following = _after(plan, tuple(_value(one.release) for one in given), service)
        if following is plan:
            break
        plan = following
    return plan, cost


def _after(plan: PricedPlan, found: tuple[float, ...], service: ServiceParts) -> PricedPlan:
    """The plan with what its searches found, or ``plan`` itself if that plan would be refused.

    Claim: once a search is paid, the answer that it was made for is not refused.
    Assumes: the accounts held enough for both when the search was paid.
    Argument: ``plan`` was admitted before. It has the same price, and its limits hold for all data.
    """
    try:
        following = service.plans.settled(plan, found)
        admit(following, service.tools)
    except (EngineFailed, Refused):
        return plan
    return following


def _value(release: Release) -> float:
    """What a search found: the one value that it released."""
    return float(release.table.column(0)[0].as_py())
