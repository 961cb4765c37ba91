"""Searches for bounds, before the answers that they are for: see ``plan.search``.

Claim: whether a search is made, what it costs, and what the answer costs, depends on no row that
    was not paid for.
Argument: searches are fixed by statement, policy and settings, and are paid and stored like any
    query; the answer's share of the budget is the same whatever they find.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dpsql.diagnostics.refusal import EngineFailed, Refused
from dpsql.ledger.shortage import check_cap, check_left
from dpsql.pipeline import Payer, admit, answer, stored
from dpsql.plan.priced import PricedPlan
from dpsql.privacy.cost import Cost
from dpsql.release.rows import Release

if TYPE_CHECKING:
    from dpsql.service.service import Service


def known(base: PricedPlan, service: Service) -> PricedPlan:
    """The plan under its bounds, where all of them are stored; it costs nothing to know them."""
    found = [stored(s.priced, service.policy.answers_key, service.tools) for s in base.searches]
    levels = tuple(_level(release) for release in found if release is not None)
    if not base.searches or len(levels) < len(found):
        return base
    return _under(base, levels, service)


def searched(base: PricedPlan, payer: Payer, service: Service) -> tuple[PricedPlan, Cost]:
    """The plan under bounds that are found now, and what finding them cost.

    Refuses what search and answer may cost together, before either is paid.
    """
    if not base.searches:
        return base, Cost.zero()
    if payer.limit is not None:
        check_cap(payer.limit, base.most)
    if known(base, service) is base:
        check_left(service.ledger.balances(payer.accounts), base.price)
    again = replace(payer, fresh=False)  # a bound that is stored is good enough
    given = [answer(s.priced, again, service.tools, intervals=False) for s in base.searches]
    cost = sum((one.cost for one in given), Cost.zero())
    return _under(base, tuple(_level(one.release) for one in given), service), cost


def _under(base: PricedPlan, levels: tuple[int, ...], service: Service) -> PricedPlan:
    """The plan under bounds that were found; as it is, were that plan refused.

    Claim: once a search is paid, nothing refuses the answer that it was for.
    Argument: ``base`` was admitted before, has the same price, and bounds that hold for all data.
    """
    try:
        found = service.plans.settled(base, levels)
        admit(found, service.tools)
    except (EngineFailed, Refused):
        return base
    return found


def _level(release: Release) -> int:
    """The rung that was found."""
    return int(release.table.column(0)[0].as_py())
