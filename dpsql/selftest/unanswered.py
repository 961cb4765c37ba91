"""What a policy may leave unanswered: a closed list, each with why. Anything else is a failure.

A question without an answer has no samples, so that nothing speaks against it; an audit that took
that for privacy would pass whatever is refused by mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dpsql.policy.model import Policy


@dataclass(frozen=True, slots=True)
class Allowed:
    """A refusal that is the policy's own wish, and which policies wish for it."""

    why: str
    wished: Callable[[Policy], bool]


ALLOWED: Mapping[str, Allowed] = {
    "DP306": Allowed(
        "strict timing has no steady form for it", lambda policy: policy.limits.strict_timing
    ),
}
"""By the code of the refusal."""


def explain_refusal(policy: Policy, code: str) -> str:
    """Why this policy need not answer what it refuses with this code; empty where it must."""
    allowed = ALLOWED.get(code)
    return allowed.why if allowed and allowed.wished(policy) else ""
