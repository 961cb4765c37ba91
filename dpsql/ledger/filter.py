"""The rule by which one more charge is admitted, which makes a limit a guarantee.

The analyst chooses each query after seeing all earlier answers. So the rule has to be a *privacy
filter*: it must be valid although the charges themselves depend on noisy answers.

Rule
    Let (E, D) be an account's limits and let sums run over everything charged, this charge
    included. Basic account (``composition: basic``, or D = 0): admit iff

        sum epsilon <= E  and  sum delta <= D.

    zCDP account: admit iff one of

        A:  sum epsilon <= E                and  sum delta <= D/2
        B:  sum rho <= rho_for(E, D/4)      and  sum threshold_delta <= D/4.

Claim
    The whole interaction is (E, D)-differentially private for the account's unit.

Assumes
    A charge (epsilon, delta, rho, threshold_delta) states two facts about one query, given
    everything before it: it is (epsilon, delta)-DP, and it is threshold_delta-approximate
    rho-zCDP. Charges are rounded up, limits down. ``rho_for(E, d)`` is a rho at which rho-zCDP
    implies (E, d)-DP. Refusals depend on charges only.

Argument (basic)
    Sums of epsilons and of deltas are a filter: Rogers, Roth, Ullman, Vadhan 2016.

Argument (zCDP)
    Let P and Q be the laws of the transcript on neighbouring databases and S any set of
    transcripts. The charges are part of the transcript, so "it ends inside A" is an event. Sums
    never decrease, so a transcript that ends inside A satisfied A at every step, and one that
    ends inside B satisfied B at every step. Each admitted transcript ends inside A or B.

    1. Transcripts in S that end inside A. They are, with the same probabilities, transcripts of
       the interaction in which A alone is the filter. That interaction is (E, D/2)-DP by the basic
       argument, so  P(S, ends in A) <= e^E Q(S, ends in A) + D/2.
       (In other words: each step is purely epsilon_i-indistinguishable except on a bad event of
       mass delta_i; off the bad events the privacy loss is at most sum epsilon_i <= E.)
    2. All others ended inside B, hence satisfied B at every step: they are, with the same
       probabilities, transcripts of the interaction in which B alone is the filter. Sums of rho
       and of approximation deltas are a filter for approximate zCDP (Whitehouse, Ramdas, Rogers,
       Wu 2023; Feldman, Zrnic 2021 for every fixed order). So that interaction is
       D/4-approximate rho-zCDP, hence (E, D/4 + D/4)-DP, so
       P(S, not in A) <= e^E Q(S, not in A) + D/2.

    Adding the two gives (E, D). ``tests/unit/ledger/test_ledger_adversary.py`` searches all
    adaptive adversaries over small menus and finds none above D.

    A refused charge violated A and B, so either filter alone would have refused it too.
    Cancelled holds contacted no engine, so they are no steps. They only made the sums larger at
    which other charges were admitted. Several queries may be under way at once: both filters hold
    under concurrent composition (Lyu 2022; Haney et al. 2023), in the order of admission.
    When the owner changes limits, the claim is about the largest E and D that were in force.

Privacy loss distributions are not used, not even inside one query, whose mechanisms are fixed
beforehand and where they would be sound. They turn a query's noise into a smaller epsilon at some
delta. B adds rho, so it gains nothing. A would gain 6 to 8 % for Gaussian noise, and nothing for
Laplace noise on up to ten statistics (10 % on twenty, at delta 1e-8). This would cost a delta that
such a query does not need otherwise and that pure accounts do not have:
``benchmarks/composition.py`` prints the table. Charges would then rest on floating-point curves,
which are for one-dimensional noise.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from dpsql.ledger.accounts import Account
from dpsql.ledger.charge import ATTO, NANO, Charge, down
from dpsql.policy.model import Allowance
from dpsql.privacy.accounting import rho_for


def admits(account: Account, total: Charge) -> bool:
    """Whether ``account`` may have spent ``total``, the new charge included."""
    return total.storable and (within_basic(account, total) or within_zcdp(account, total))


def within_basic(account: Account, total: Charge) -> bool:
    """Branch A, or the whole rule of a basic account."""
    return total.epsilon <= account.epsilon and total.delta <= basic_delta(account)


def within_zcdp(account: Account, total: Charge) -> bool:
    """Branch B."""
    return total.rho <= rho_limit(account) and total.threshold <= threshold_delta(account)


def basic_delta(account: Account) -> int:
    """The limit on the sum of deltas in basic composition, in atto."""
    return account.delta // 2 if account.zcdp else account.delta


def threshold_delta(account: Account) -> int:
    """The limit on the sum of threshold deltas in branch B, in atto."""
    return account.delta // 4


def rho_limit(account: Account) -> int:
    """The limit on the sum of rho, in nano; -1 if nothing is admitted in rho."""
    if not account.zcdp or account.epsilon == 0 or account.delta < 4:
        return -1
    return _rho_limit(account.epsilon, account.delta // 4)


def rho_limit_of(allowance: Allowance) -> int:
    """The limit on the sum of rho of an account with this allowance, in nano; 0 if it has none."""
    delta = down(allowance.delta, ATTO)
    if allowance.composition == "basic" or delta < 4:
        return 0
    return _rho_limit(down(allowance.epsilon, NANO), delta // 4)


@lru_cache(maxsize=1024)
def _rho_limit(epsilon: int, delta: int) -> int:
    return down(rho_for(Fraction(epsilon, NANO), Fraction(delta, ATTO)), NANO)
