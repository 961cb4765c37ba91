"""One question of the self-test at a time."""

from __future__ import annotations

import functools

from dpsql import selftest
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.selftest.scenarios import Scenario
from support.datasets import FIXTURES

POLICY = FIXTURES / "policies" / "shop.yaml"


@functools.cache
def policy(name: str = "shop") -> Policy:
    return load(FIXTURES / "policies" / f"{name}.yaml")


def find(question: str, scenario: Scenario, samples: int) -> selftest.Finding:
    """The finding of one question about the probes."""
    (one,) = selftest.run(
        policy(), samples, wanted=lambda s, q: (s, q.name) == (scenario, question)
    )
    return one
