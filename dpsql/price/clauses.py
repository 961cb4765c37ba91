"""The budgets (pots) of one query: one for each differential privacy clause, and the session's.

Claim: the cost of all pots together is the sum of their costs.
Assumes: the budget of each pot is fixed by its clause or by the session.
Argument: every measurement belongs to one pot. All mechanisms are fixed before the query runs, and
    guarantees of mechanisms on the same data add.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.ir.privacy_clause import Terms
from dpsql.plan.nodes import Plan
from dpsql.price.priced import PricedPlan
from dpsql.price.request import Request
from dpsql.privacy.cost import Cost

Pricing = Callable[[Plan, Request], PricedPlan]


def price_each_clause(plan: Plan, request: Request, pricing: Pricing) -> PricedPlan:
    """The plan with every pot priced separately."""
    pots = list(dict.fromkeys(m.terms for m in plan.measurements))
    if pots == [None]:
        return pricing(plan, request)
    priced = {terms: pricing(_of(plan, terms), _asked(request, terms)) for terms in pots}
    parts = {part.measurement.name: part for one in priced.values() for part in one.parts}
    cost = sum((one.cost for one in priced.values()), Cost.zero())
    events = tuple(event for one in priced.values() for event in one.events)
    family = " and ".join(sorted({one.family for one in priced.values()}))
    return PricedPlan(plan, tuple(parts[m.name] for m in plan.measurements), cost, events, family)


def _of(plan: Plan, terms: Terms | None) -> Plan:
    return replace(plan, measurements=tuple(m for m in plan.measurements if m.terms == terms))


def _asked(request: Request, terms: Terms | None) -> Request:
    """The session's request as a clause changes it. The role's limit on groups stays."""
    if terms is None:
        return request
    if terms.groups is not None and terms.groups > request.groups:
        raise Refused(_too_many_groups(request, terms))
    if terms.selection == "threshold" and request.mechanism == "gaussian":
        raise Refused(_not_laplace(terms))
    return replace(
        request,
        epsilon=request.epsilon if terms.epsilon is None else terms.epsilon,
        delta=request.delta if terms.delta is None else terms.delta,
        mechanism="laplace" if terms.selection == "threshold" else request.mechanism,
    )


def _too_many_groups(request: Request, terms: Terms) -> Refusal:
    return Refusal(
        "DP406",
        f"a unit counts in at most {request.groups} groups here, not in {terms.groups}",
        "The owner of the policy limits in how many groups one unit counts.",
        f"max_groups_contributed = {request.groups}",
        terms.span,
    )


def _not_laplace(terms: Terms) -> Refusal:
    return Refusal(
        "DP405",
        "LAPLACE_THRESHOLD chooses groups with Laplace noise, and this session asks for Gaussian",
        "Which noise chooses the groups is part of the privacy of the answer.",
        "SET dpsql.mechanism = 'auto'",
        terms.span,
    )
