"""The noise that is really drawn, held against what the ledger says of it.

Each noise is drawn some thousand times more. Its spread must be that of the law which the ledger
names; its last bits must be as good as its first; and what is charged must be at least the price of
all events, computed anew.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction

from tests.adversary import books
from tests.adversary.books import NANO, exact
from tests.adversary.model import Case, Charge, Draw, Finding, Measured, Run, finding

SLACK = 0.10
"""A spread that is smaller by a tenth is beyond chance: six standard errors of 4,000 draws."""
CLOSE = 1e-9
BEYOND = 6.0
"""Standard errors that chance does not reach."""


class Noise:
    """Looks at the first run alone."""

    name = "noise"

    def judge(self, case: Case) -> Finding | None:
        """The first noise that is narrower than said, missing, or cheaper than it costs."""
        run = case.left
        for number, transcript in enumerate(run.transcripts):
            for measured in transcript.measured:
                problem = _leak(measured) or next(filter(None, map(_narrow, measured.draws)), "")
                if problem:
                    return finding(self.name, case, number, problem, [measured.statement])
            problem = _cheap([c for c in run.charges if c.step == number])
            problem = problem or _told(run, number)
            if problem:
                return finding(self.name, case, number, problem)
        return None


def _leak(measured: Measured) -> str:
    if measured.leak:
        return f"what is released depends on {measured.leak} beside their noisy values"
    statistics = [c for c in measured.columns if c[0].startswith("p")]
    if len(measured.draws) < len(statistics):
        return f"{len(statistics)} numbers are released with {len(measured.draws)} noises"
    return ""


def _narrow(draw: Draw) -> str:
    if not draw.sample:
        return ""
    kind, fields = draw.law
    parameters = dict(fields)
    count = len(draw.sample)
    if kind == "gaussian":
        variance = float(exact(parameters["variance"]))
        found, wanted = sum(v * v for v in draw.sample) / count, _gaussian(variance)
    else:
        rate = 1 / float(exact(parameters["scale"])) if kind == "laplace" else None
        rate = float(exact(parameters["epsilon"])) if rate is None else rate
        if rate > 40:
            return ""
        bound = int(parameters["bound"]) if kind == "truncated geometric" else math.inf
        found, wanted = sum(map(abs, draw.sample)) / count, distance(rate, bound)
    if wanted * count < 1_000:
        return ""  # hardly any draw is not zero: nothing can be said
    if found < wanted * (1 - SLACK):
        return f"{kind} noise {parameters} spreads {found:.4g}, and should {wanted:.4g}"
    if draw.sample[: count // 2] == draw.sample[count // 2 :]:
        return f"{kind} noise {parameters} is the same in two draws"
    above, below = sum(v > 0 for v in draw.sample), sum(v < 0 for v in draw.sample)
    if abs(above - below) > BEYOND * math.sqrt(above + below):
        return f"{kind} noise {parameters} leans to one side: {above} times up, {below} down"
    if wanted > 50 and abs(sum(v & 1 for v in draw.sample) / count - 0.5) > 0.05:
        return f"{kind} noise {parameters} is more often even than odd, or less"
    return ""


def distance(rate: float, bound: float) -> float:
    """The mean of |x| where P(x) ~ exp(-rate |x|) for whole numbers up to a bound.

    >>> round(distance(1 / 40, 105), 1), round(distance(1 / 40, math.inf), 1)
    (31.9, 40.0)
    """
    step, rest = -math.expm1(-rate), -math.expm1(-rate * bound)
    cut = bound * math.exp(-rate * bound) * step if bound < math.inf else 0.0
    weights, distances = rest / step, (rest - cut) / step**2
    return 2 * distances / (math.exp(rate) + 2 * weights)


def _gaussian(variance: float) -> float:
    """The variance of a discrete Gaussian, which is smaller than its parameter where that is small."""
    if variance > 4:
        return variance
    weights = [(x * x, math.exp(-x * x / (2 * variance))) for x in range(-40, 41)]
    return sum(x * w for x, w in weights) / sum(w for _, w in weights)


def _cheap(charges: Sequence[Charge]) -> str:
    for charge in charges:
        events = [json.loads(text) for text in charge.events]
        if not events:
            return "a charge without an event"
        rho = sum(books.rho(event) for event in events)
        if charge.rho < rho * NANO * (1 - CLOSE):
            return f"events cost rho {rho}, and {charge.rho / NANO} was charged"
        pure = [books.epsilon(event) for event in events]
        price = sum((p for p in pure if p is not None), Fraction(0))
        if charge.epsilon < price * NANO or None in pure:
            left = (charge.delta - charge.threshold) / NANO**2
            least = books.converted(rho, left)
            if charge.epsilon < least * NANO * (1 - CLOSE):
                words = f"{float(price)} or, for delta {left:.3g}, {least}"
                return f"events cost epsilon {words}, and {charge.epsilon / NANO} was charged"
        threshold = sum((books.delta(event) for event in events), Fraction(0))
        if charge.threshold < threshold * NANO**2:
            return f"events cost delta {float(threshold)}, and {charge.threshold / NANO**2} was charged"
    return ""


def _told(run: Run, number: int) -> str:
    """What an answer says that it cost is what the ledger has."""
    transcript = run.transcripts[number]
    charges = [c for c in run.charges if c.step == number]
    if transcript.error is None and transcript.measured and not charges:
        return "an answer was measured, and nothing is in the ledger"
    if transcript.recalled and (charges or transcript.measured):
        return "a stored answer was measured or charged"
    if transcript.cost is None or transcript.error is not None:
        return ""
    spent = sum(c.epsilon for c in charges) / NANO
    if abs(float(transcript.cost[0]) - spent) > 1e-6 * max(1.0, spent):
        return f"an answer says that it cost {transcript.cost[0]}, and {spent} was charged"
    return ""
