"""The refusals that a policy may cause: a closed list with reasons. Any other refusal is a failure.

A question without an answer has no samples, so nothing can disprove its charge. An audit that
counted this as private would pass everything that is refused by mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dpsql.policy.model import Policy


@dataclass(frozen=True, slots=True)
class Allowed:
    """A refusal that the owner of the policy chose, and the test for such policies."""

    why: str
    wished: Callable[[Policy], bool]


ALLOWED: Mapping[str, Allowed] = {
    "DP306": Allowed(
        "its running time could depend on rows, under strict timing",
        lambda policy: policy.limits.strict_timing,
    ),
}
"""Allowed refusals, by code."""


def explain_refusal(policy: Policy, code: str) -> str:
    """Why this policy may refuse with this code; empty if it must answer."""
    allowed = ALLOWED.get(code)
    return allowed.why if allowed and allowed.wished(policy) else ""
