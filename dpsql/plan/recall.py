"""Which stored release answers a query: the same question, answered at least as well.

Claim: what is recalled is an answer to the query: the released numbers are of the same rows,
    groups, statistics and bounds, under the same policy and data version, and the noise of each
    is no wider than what was asked for.
Assumes: ``canonical`` (equal texts have equal exact answers).
Argument: ``family`` holds everything but the noise; noises are compared one by one. Reading a
    stored release again, for whoever may ask the query, is post-processing: it costs nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

from dpsql.plan.canonical import NotCanonical, canonical
from dpsql.plan.nodes import Cells
from dpsql.plan.priced import PricedMeasurement, PricedPlan
from dpsql.plan.stages import SALT
from dpsql.sql.blocks import Writer
from dpsql.sql.expressions import Expression
from dpsql.sql.render import parameters


@dataclass(frozen=True, slots=True)
class Identity:
    """Under which name a release is stored, and how good it is.

    ``key`` differs wherever the noise does; ``family`` does not. ``noise`` has, for each number
    that a group gets, its standard deviation and how far it is off in one of 20 answers.
    """

    key: str
    family: str
    noise: tuple[float, ...]

    def served_by(self, noise: Sequence[float]) -> bool:
        """Whether a release of this family with that noise is good enough."""
        return len(noise) == len(self.noise) and all(
            stored <= asked for stored, asked in zip(noise, self.noise, strict=True)
        )


class _Item(Protocol):
    """A statistic with its noise."""

    @property
    def statistic(self) -> object: ...
    @property
    def shift(self) -> int: ...
    @property
    def noise(self) -> object: ...
    @property
    def standard_deviation(self) -> float: ...
    @property
    def half_width(self) -> float: ...


def identity(priced: PricedPlan, policy_version: str) -> Identity:
    """The identity of a plan's release, under a policy version (which holds the data version)."""
    plan = priced.plan
    whole = {
        "policy": policy_version,
        "parts": [_asked(part) for part in priced.parts],
        "lookups": [[v.name, v.form, Writer().select(v.relation)] for v in plan.lookups],
        "publics": [[p.name, p.sql] for p in plan.publics] if plan.lookups else [],
    }
    family = _digest(whole)
    noise = [[repr(item.noise), str(item.shift)] for part in priced.parts for item in _items(part)]
    thresholds = [s.threshold for p in priced.parts if (s := p.selection) is not None]
    return Identity(_digest([family, noise, thresholds]), family, tuple(_widths(priced)))


def _asked(part: PricedMeasurement) -> list[object]:
    """Everything about a measurement but its noise and the grids that follow from it."""
    measurement = part.measurement
    try:
        text = canonical(measurement)
        if parameters(part.sql) - {SALT}:
            raise NotCanonical
    except NotCanonical:
        text = part.sql
    least = None if measurement.terms is None else measurement.terms.least
    asked: list[object] = [
        text,
        _cells(measurement.cells),
        repr(replace(part.bounding, bits=0)),
        [_constants(item) for item in part.noised],
        None if part.selection is None else part.selection.shares,
        [f.shape.kind.value for f in measurement.key_fields],
    ]
    # Groups below a least number of units are left out: a lower threshold is no better answer.
    return asked if least is None else [*asked, least]


def _constants(item: _Item) -> list[str]:
    """What a statistic is, apart from its expressions; how a chosen value is searched for."""
    statistic = item.statistic
    values = [getattr(statistic, f.name) for f in fields(statistic)]  # type: ignore[arg-type]
    constants = [repr(v) for v in values if not isinstance(v, Expression)]
    return [type(statistic).__name__, repr(getattr(item, "buckets", None)), *constants]


def _cells(found: Cells | None) -> list[object] | None:
    """Public groups by their number and the words of their query, whose order may differ."""
    return None if found is None else [found.count, sorted(re.findall(r"\w+|\W", found.sql))]


def _items(part: PricedMeasurement) -> Iterator[_Item]:
    yield from part.noised
    if part.selection is not None:
        yield part.selection.units


def _widths(priced: PricedPlan) -> Iterator[float]:
    for part in priced.parts:
        for item in _items(part):
            yield item.standard_deviation
            yield item.half_width
        if part.selection is not None:
            yield float(part.selection.threshold)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
