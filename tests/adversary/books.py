"""The ledger as sqlite3 reads it, and what its events cost by formulas of the literature.

Nothing of dpsql is used: an event is read as its JSON, and every price is computed anew.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

from tests.adversary.model import Charge

LEDGER = "policy.ledger.db"
NANO = 10**9


def charges(folder: Path, after: int, step: int) -> tuple[tuple[Charge, ...], int]:
    """The entries with a number above ``after``, and the last number."""
    path = folder / LEDGER
    if not path.exists():
        return (), after
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as ledger:
        rows = ledger.execute(
            "SELECT id, state, epsilon, delta, rho, threshold FROM hold WHERE id > ? ORDER BY id",
            (after,),
        ).fetchall()
        found = []
        for number, *held in rows:
            records = ledger.execute(
                "SELECT json FROM event WHERE hold = ? ORDER BY seq", (number,)
            ).fetchall()
            events = [e for (text,) in records for e in json.loads(text).get("events", [])]
            found.append(Charge(step, *held, tuple(json.dumps(e) for e in events)))
            after = number
    return tuple(found), after


def exact(value: Any) -> Fraction:
    """A number as the ledger writes it."""
    return Fraction(str(value))


def epsilon(event: Mapping[str, Any]) -> Fraction | None:
    """The pure epsilon of an event; None where there is none."""
    match event["event"]:
        case "laplace":
            return exact(event["l1"]) / exact(event["scale"])
        case "exponential":
            return exact(event["span"]) / exact(event["scale"])
        case "truncated_geometric":
            return exact(event["epsilon"])
        case "threshold":
            return Fraction(0)
        case _:
            return None


def rho(event: Mapping[str, Any]) -> float:
    """The zCDP of an event."""
    pure = epsilon(event)
    if event["event"] == "gaussian":
        return float(exact(event["l2_squared"]) / (2 * exact(event["variance"])))
    assert pure is not None
    loose = float(pure) * math.tanh(float(pure) / 2)
    if event["event"] == "exponential":
        squares = exact(event["span_squared"]) / (8 * exact(event["scale"]) ** 2)
        return min(float(squares), loose)
    return loose


def delta(event: Mapping[str, Any]) -> Fraction:
    """The delta of an event that zCDP does not hold."""
    kinds = ("threshold", "truncated_geometric")
    return exact(event["delta"]) if event["event"] in kinds else Fraction(0)


def threshold(kind: str, parameter: Fraction, delta: float, groups: int) -> int:
    """From which noisy number of units a group may be shown, if one unit is in ``groups`` of them.

    For Laplace noise ``parameter`` is the scale, for Gaussian noise the variance.
    """
    share = -math.expm1(math.log1p(-delta) / groups)
    if kind == "laplace":
        rate = 1 / float(parameter)
        return 1 + math.ceil(max(0.0, -math.log(share * (1 + math.exp(-rate))) / rate))
    deviation = math.sqrt(float(parameter))
    return 1 + math.ceil(deviation * -NormalDist().inv_cdf(share) - 1e-6)


def converted(rho: float, delta: float) -> float:
    """The least epsilon that zCDP promises with this delta: the infimum over all orders."""
    if delta <= 0:
        return math.inf

    def at(exponent: float) -> float:
        order = 1 + math.exp(exponent)
        return rho * order + math.log(1 / (order * delta)) / (order - 1) + math.log1p(-1 / order)

    best = min((i / 10 for i in range(-100, 250)), key=at)
    low, high = best - 0.1, best + 0.1
    for _ in range(80):
        third = (high - low) / 3
        low, high = (
            (low, high - third) if at(low + third) < at(high - third) else (low + third, high)
        )
    return max(0.0, at((low + high) / 2))
