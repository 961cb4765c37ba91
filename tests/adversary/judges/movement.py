"""How far one unit moves the exact integers, held against the events that were paid for.

The integers of both worlds are known, and so are the events of the ledger. For each kind of noise
and each scale, all that moves under it must be covered by the events that name it: in L1 for
Laplace noise, in L2 for Gaussian noise. Nothing is taken from the planner but the integers.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.adversary.books import exact
from tests.adversary.model import Case, Charge, Finding, Measured, finding
from tests.adversary.seams import same

Law = tuple[str, str]


class Movement:
    """Adds up what moves, for each law of noise in a step."""

    name = "movement"

    def judge(self, case: Case) -> Finding | None:
        """The first step in which a unit moves more than was paid for."""
        if not case.pinned or case.left.opened or case.right.opened:
            return None
        pairs = zip(case.left.transcripts, case.right.transcripts, strict=True)
        for number, (left, right) in enumerate(pairs):
            charges = [c for c in case.left.charges if c.step == number]
            problem = self._step(case, left.measured, right.measured, charges)
            if problem:
                return finding(self.name, case, number, *problem)
        return None

    def _step(
        self, case: Case, left: Sequence[Measured], right: Sequence[Measured],
        charges: Sequence[Charge],
    ) -> tuple[str, list[str]] | None:  # fmt: skip
        if left and not charges:
            return "something was measured, and nothing charged", [m.statement for m in left]
        moved: dict[Law, Fraction] = defaultdict(Fraction)
        spoken: dict[Law, list[str]] = defaultdict(list)
        for one, other in zip(left, right, strict=False):
            if [c[0] for c in one.columns] != [c[0] for c in other.columns]:
                return "an engine's columns differ between neighbours", [one.statement]
            if len(one.draws) != len(other.draws):
                return "one of two neighbours has noise that the other has not", [one.statement]
            for number in range(len(one.draws)):
                for law, by in _moved(one, other, number).items():
                    moved[law] += by
                    spoken[law].append(one.statement)
                    if by and case.relation != "without":
                        words = f"what must not matter moves a number by {float(by)}"
                        return words, [one.statement]
        return _unpaid(moved, spoken, charges)


def _unpaid(
    moved: Mapping[Law, Fraction], spoken: Mapping[Law, list[str]], charges: Sequence[Charge]
) -> tuple[str, list[str]] | None:
    paid = _paid(charges)
    for law, amount in moved.items():
        if law not in paid:
            return f"no event names the noise {law}", spoken[law]
        if amount > paid[law]:
            words = f"{float(amount)} under {law}, and {float(paid[law])} was paid for"
            return f"a unit moves exact numbers by {words}", spoken[law]
    return None


def _paid(charges: Sequence[Charge]) -> dict[Law, Fraction]:
    """For each law how far a unit may move what it is added to."""
    paid: dict[Law, Fraction] = defaultdict(Fraction)
    for event in (json.loads(text) for charge in charges for text in charge.events):
        match event["event"]:
            case "laplace":
                paid["laplace", event["scale"]] += exact(event["l1"])
            case "gaussian":
                paid["gaussian", event["variance"]] += exact(event["l2_squared"])
            case "truncated_geometric":
                paid["truncated geometric", ""] += exact(event["epsilon"])
            case "exponential":
                paid["exponential", event["scale"]] += exact(event["span"])
                paid["exponential squared", event["scale"]] += exact(event["span_squared"])
    return paid


def _moved(one: Measured, other: Measured, number: int) -> dict[Law, Fraction]:
    """How far the integers under one noise are apart in two worlds.

    Laplace noise counts distances, Gaussian noise their squares, choices both, as they may be
    charged for either. A truncated geometric counts the epsilon of all groups.
    """
    draw = one.draws[number]
    kind, fields = draw.law
    by = _distances(_column(one, number), _column(other, number))
    if kind == "laplace":
        return {(kind, dict(fields)["scale"]): Fraction(sum(by))}
    if kind == "gaussian":
        return {(kind, dict(fields)["variance"]): Fraction(sum(d * d for d in by))}
    if kind == "truncated geometric":
        return {(kind, ""): sum(by) * exact(dict(fields)["epsilon"])}
    scale = dict(fields)["scale"]
    squared = Fraction(sum(d * d for d in by))
    return {(kind, scale): Fraction(sum(by)), (f"{kind} squared", scale): squared}


def _column(measured: Measured, number: int) -> dict[Any, Any]:
    values = measured.draws[number].exact
    return {tuple(map(same, k)): v for k, v in zip(measured.keys, values, strict=True)}


def _distances(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> list[int]:
    return [_distance(one.get(key), other.get(key)) for key in {**one, **other}]


def _distance(one: Any, other: Any) -> int:
    """Of two integers, or of two lists of bins with weights; a group that is missing has nothing."""
    if isinstance(one, tuple) or isinstance(other, tuple):
        weights: dict[int, int] = defaultdict(int)
        for sign, pairs in ((1, one), (-1, other)):
            for place, weight in pairs or ():
                weights[place] += sign * weight
        return sum(map(abs, weights.values()))
    return abs((one or 0) - (other or 0))
