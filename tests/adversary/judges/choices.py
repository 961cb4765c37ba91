"""Values that are chosen by rank tell two neighbours apart no better than was paid for.

The mechanism chooses among the bins of both worlds, some thousand times each. Half of the draws
say where to look; the other half bound from below, with a margin of five standard errors, by what
factor the chance of something differs. That factor may be no more than the epsilon of its event.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

from tests.adversary.books import exact
from tests.adversary.model import Case, Charge, Draw, Finding, Measured, finding
from tests.adversary.seams import same

DRAWS = 3_000
MARGIN = 5.0
GROUPS = 3
"""Of each number so many groups are looked at."""
CUTS = 8


class Choices:
    """Draws from the bins of two neighbours."""

    name = "choices"

    def judge(self, case: Case) -> Finding | None:
        """The first choice that tells too much."""
        if case.relation != "without" or not case.pinned:
            return None
        pairs = zip(case.left.transcripts, case.right.transcripts, strict=False)
        for number, (left, right) in enumerate(pairs):
            charges = [c for c in case.left.charges if c.step == number]
            for one, other in zip(left.measured, right.measured, strict=False):
                for at, draw in enumerate(one.draws[: len(other.draws)]):
                    problem = _problem(draw, charges, _groups(one, other, at))
                    if problem:
                        return finding(self.name, case, number, problem, [one.statement])
        return None


Bins = Sequence[tuple[int, int]]


def _groups(one: Measured, other: Measured, at: int) -> Iterator[tuple[Bins, Bins]]:
    """The bins of groups that differ."""
    there = {tuple(map(same, k)): v for k, v in zip(other.keys, other.draws[at].exact, strict=True)}
    found = 0
    for key, bins in zip(one.keys, one.draws[at].exact, strict=True):
        others = there.get(tuple(map(same, key)), ())
        if isinstance(bins, tuple) and bins != others and found < GROUPS:
            found += 1
            yield bins, others


def _problem(draw: Draw, charges: Sequence[Charge], groups: Iterator[tuple[Bins, Bins]]) -> str:
    if draw.again is None:
        return ""
    scale = dict(draw.law[1])["scale"]
    events = [json.loads(text) for charge in charges for text in charge.events]
    ours = [e for e in events if e["event"] == "exponential" and e["scale"] == scale]
    paid = [exact(e["span"]) / exact(e["scale"]) for e in ours]
    if not paid or not 0.02 < float(max(paid)) < 8:
        return ""
    epsilon = float(max(paid))
    for bins in groups:
        one, other = (draw.again(side, DRAWS) for side in bins)
        told = max(_told(one, other), _told(other, one))
        if told > epsilon:
            return (
                f"a choice tells neighbours apart by epsilon {told:.3g}, and {epsilon:.3g} was paid"
            )
    return ""


def _told(one: Sequence[str], other: Sequence[str]) -> float:
    """A lower bound of the largest log-ratio of chances, of events that the first halves name."""
    half = len(one) // 2
    events = _events(one[:half], other[:half])
    best = max(events, key=lambda event: _ratio(event, one[:half], other[:half]), default=None)
    return 0.0 if best is None else _ratio(best, one[half:], other[half:], MARGIN)


Event = tuple[str, float | str]


def _events(one: Sequence[str], other: Sequence[str]) -> list[Event]:
    values = [*one, *other]
    try:
        ordered = sorted(map(float, values))
    except ValueError:
        return [("is", value) for value in sorted(set(values))[:50]]
    cuts = sorted({ordered[len(ordered) * i // CUTS] for i in range(1, CUTS)})
    return [(word, cut) for cut in cuts for word in ("below", "above")]


def _holds(event: Event, value: str) -> bool:
    word, cut = event
    if word == "is":
        return value == cut
    return (float(value) <= float(cut)) == (word == "below")


def _ratio(event: Event, one: Sequence[str], other: Sequence[str], margin: float = 0.0) -> float:
    low = _bound(sum(_holds(event, v) for v in one), len(one), -margin)
    high = _bound(sum(_holds(event, v) for v in other), len(other), margin)
    return math.log(low / high) if low > 0 and high > 0 else 0.0


def _bound(count: int, of: int, margin: float) -> float:
    """Wilson's bound of a chance, so many standard errors away; with none, the share with one more."""
    share = count / of
    if not margin:
        return (count + 1) / (of + 2)
    square = margin * margin
    middle = share + square / (2 * of)
    spread = abs(margin) * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    return max(0.0, (middle + math.copysign(spread, margin)) / (1 + square / of))
