"""How the budget of a question is divided among its statistics and its selections of groups.

A request states an epsilon, a rho, or both. An epsilon is divided by the number of statistics for
Laplace noise, and is converted to a rho, which is divided, for Gaussian noise. A rho is divided by
the number of statistics for either. Laplace noise of a rho has the epsilon at which any pure
mechanism costs no more than that rho.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dpsql.price.priced import Share
from dpsql.price.request import Request
from dpsql.privacy.accounting import epsilon_of_zcdp, gaussian_rho_for_query

QUARTER = Fraction(1, 4)
"""The part of its delta that a question priced in rho spends on the selection of groups.

An account that composes in zCDP has a quarter of its delta for selections (``ledger.filter``). So
questions whose shares of rho add up to the whole have shares of that quarter that do too.
"""
_NONE = Fraction(0)


def divide(request: Request, statistics: int, selections: int) -> Iterator[Share]:
    """The share of each statistic, for each family of mechanisms that may be used."""
    wanted = request.mechanism
    if wanted in ("auto", "laplace", "geometric") and _may(request, "laplace", "geometric"):
        part = request.delta if request.rho is None else request.delta * QUARTER
        label = None if request.epsilon is None else request.epsilon / statistics
        rho = None if request.rho is None else request.rho / statistics
        yield Share("laplace", statistics, label, rho, _NONE, _each(part, selections))
    if wanted in ("auto", "gaussian") and _may(request, "gaussian") and request.delta > 0:
        yield _gaussian(request, statistics, selections)


def _gaussian(request: Request, statistics: int, selections: int) -> Share:
    """The budget of each statistic with Gaussian noise.

    Claim: all noise together is (epsilon, noise_delta)-DP for the epsilon of the labels, and costs
        at most the rho of the request.
    Assumes: the shares add up to the whole; rational arithmetic is exact.
    Argument: each limit that the request states gives a rho, and the smaller one is taken. A rho
        that follows from an epsilon has that label. Another rho is converted, which gives a true
        label; where both are true, the smaller one is stated.
    """
    part = Fraction(1, 2) if request.rho is None else QUARTER
    selected = request.delta * part if selections else _NONE
    delta, epsilon = request.delta - selected, request.epsilon
    limits = [] if epsilon is None else [gaussian_rho_for_query(epsilon, delta)]
    if request.rho is not None:
        limits.append(request.rho)
        label = epsilon_of_zcdp(request.rho, delta)
        epsilon = label if epsilon is None else min(label, epsilon)
    assert epsilon is not None
    label, rho = epsilon / statistics, min(limits) / statistics
    return Share("gaussian", statistics, label, rho, delta, _each(selected, selections))


def _each(delta: Fraction, selections: int) -> Fraction:
    return delta / selections if selections else _NONE


def _may(request: Request, *names: str) -> bool:
    return any(name in request.allowed for name in names)
