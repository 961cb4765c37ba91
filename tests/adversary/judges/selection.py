"""Groups that only one unit is in are shown with no more chance than the delta that was paid.

The chance follows from the threshold, the law of the noise and the number of units alone. It is
computed from these here, for as many groups as the event says that a unit may be in.
"""

from __future__ import annotations

import json
import math

import yaml

from tests.adversary.books import exact
from tests.adversary.model import Case, Draw, Finding, Measured, finding
from tests.adversary.seams import same

CLOSE = 1 + 1e-6


class Selection:
    """Computes chances of groups that are in the first of two neighbours only."""

    name = "selection"

    def judge(self, case: Case) -> Finding | None:
        """The first threshold that is too low."""
        for number, pair in enumerate(
            zip(case.left.transcripts, case.right.transcripts, strict=False)
        ):
            charges = [c for c in case.left.charges if c.step == number]
            events = [json.loads(text) for charge in charges for text in charge.events]
            kinds = ("threshold", "truncated_geometric")
            delta = sum(float(exact(e["delta"])) for e in events if e["event"] in kinds)
            groups = max(
                (int(e.get("groups", 1)) for e in events if e["event"] in kinds), default=0
            )
            for one, other in zip(pair[0].measured, pair[1].measured, strict=False):
                if one.shown is None or not one.draws:
                    continue
                problem = _problem(case, (one, other), groups, delta)
                if problem:
                    return finding(self.name, case, number, problem, [one.statement])
        return None


def _problem(case: Case, pair: tuple[Measured, Measured], groups: int, delta: float) -> str:
    one, other = pair
    assert one.shown is not None
    if not groups:
        return "groups are selected, and no event says so"
    there = {tuple(map(same, key)) for key in other.keys}
    units = one.draws[0].exact
    lone = [u for key, u in zip(one.keys, units, strict=True) if tuple(map(same, key)) not in there]
    if len(lone) > groups * max(1, len(case.owners)):
        return f"a unit is in {len(lone)} groups alone, and {groups} were paid for"
    worst = [_together(case, one)] * groups
    for numbers in (lone, worst):
        shown = [tail(one.draws[0], one.shown[0] - n) for n in numbers]
        chance = -math.expm1(sum(math.log1p(-min(p, 1 - 1e-16)) for p in shown))
        if chance > delta * CLOSE:
            words = f"groups of {numbers} units are shown with a chance of {chance:.3g}"
            return f"{words}, and delta {delta:.3g} was paid"
    passed = _passed(one)
    if passed is not None and passed != one.shown[1]:
        return f"{one.shown[1]} groups are shown, and {passed} pass the threshold"
    return ""


def _together(case: Case, one: Measured) -> int:
    """How many units of the kinds that a statement reads are protected together."""
    rows = [r for r in case.left.world.rows if r.owner and f'"{r.table}"' in one.statement]
    kinds = {(row.owner or "").partition(":")[0] for row in rows}
    declared = yaml.safe_load(case.left.world.policy)["units"]
    return max((int(declared[kind].get("group_size", 1)) for kind in kinds), default=1)


def _passed(one: Measured) -> int | None:
    """How many noisy numbers of units reach the threshold, as they were drawn."""
    units = one.draws[0]
    if one.shown is None or len(units.noise) != len(units.exact):
        return None
    least = one.shown[0]
    return sum(e + n >= least for e, n in zip(units.exact, units.noise, strict=True))


def tail(draw: Draw, least: int) -> float:
    """The chance that noise is at least this."""
    kind, fields = draw.law
    parameters = dict(fields)
    if least <= 0:
        return 1.0
    if kind == "laplace":
        rate = 1 / float(exact(parameters["scale"]))
        return math.exp(-rate * least) / (1 + math.exp(-rate))
    if kind == "gaussian":
        return _gaussian_tail(float(exact(parameters["variance"])), least)
    rate, bound = float(exact(parameters["epsilon"])), int(parameters["bound"])
    if least > bound:
        return 0.0
    weights = [math.exp(-rate * abs(x)) for x in range(-bound, bound + 1)]
    return sum(weights[bound + least :]) / sum(weights)


def _gaussian_tail(variance: float, least: int) -> float:
    reach = 40 * math.sqrt(variance) + 10
    ends = range(least, least + int(reach)), range(-int(reach), int(reach) + 1)
    if reach > 200_000:
        return 0.5 * math.erfc((least - 1) / math.sqrt(2 * variance))
    above, total = (sum(math.exp(-x * x / (2 * variance)) for x in end) for end in ends)
    return above / total
