"""Events: records of what was spent, which later versions must still read with the same meaning.

A ledger keeps these records for ever, so these rules hold. An event is never removed and never
changes its meaning. A new meaning needs a new event with a new name. An event may gain a field only
with a default that keeps old records true. Numbers are exact ("3/7"). A record that is not
understood is refused, never skipped or guessed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, assert_never, get_args

from dpsql.exact import parse_exact
from dpsql.privacy.accounting import epsilon_of_zcdp, rho_of_pure
from dpsql.privacy.cost import Cost

ThresholdKind = Literal["laplace", "gaussian"]


@dataclass(frozen=True, slots=True)
class LaplaceEvent:
    """Discrete Laplace noise of ``scale`` on integers that one unit moves by ``l1`` in all."""

    l1: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        """Both are positive."""
        _positive(self.l1, self.scale)


@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """Discrete Gaussian noise of ``variance`` on integers that one unit moves by sqrt(l2_squared).

    ``delta`` is only for accounts that add epsilons: at this delta they convert rho to an epsilon.
    """

    l2_squared: Fraction
    variance: Fraction
    delta: Fraction = Fraction(1, 10**9)

    def __post_init__(self) -> None:
        """All are positive, delta below 1."""
        _positive(self.l2_squared, self.variance, self.delta, 1 - self.delta)


@dataclass(frozen=True, slots=True)
class TruncatedGeometricEvent:
    """Counts with truncated geometric noise, shown only above its bound; (epsilon, delta)-DP."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        """Both are positive, delta below 1."""
        _positive(self.epsilon, self.delta, 1 - self.delta)


@dataclass(frozen=True, slots=True)
class ThresholdEvent:
    """Groups are shown when a noisy count passes a threshold.

    ``delta`` is the probability that any of the ``groups`` of a unit is shown because of that unit
    alone. The noise of the counts is a separate event.
    """

    kind: ThresholdKind
    delta: Fraction
    groups: int

    def __post_init__(self) -> None:
        """A listed kind, a delta between 0 and 1, at least one group."""
        if self.kind not in get_args(ThresholdKind):
            raise ValueError(f"not a kind of threshold: {self.kind!r}")
        _positive(self.delta, 1 - self.delta, Fraction(self.groups))


@dataclass(frozen=True, slots=True)
class ExponentialEvent:
    """Choices with P ~ exp(utility / scale), one in each group.

    In each group, a unit changes differences of utilities by at most the span of that group. The
    spans of all groups add up to at most ``span``, their squares to at most ``span_squared``.
    """

    span: Fraction
    span_squared: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        """All are positive."""
        _positive(self.span, self.span_squared, self.scale)


Event = LaplaceEvent | GaussianEvent | TruncatedGeometricEvent | ThresholdEvent | ExponentialEvent

_NAMES: dict[str, Callable[..., Event]] = {
    "laplace": LaplaceEvent,
    "gaussian": GaussianEvent,
    "truncated_geometric": TruncatedGeometricEvent,
    "threshold": ThresholdEvent,
    "exponential": ExponentialEvent,
}


def to_json(event: Event) -> str:
    """The event as one line, which ``from_json`` reads back to an equal event.

    >>> to_json(LaplaceEvent(Fraction(1), Fraction(7, 3)))
    '{"event": "laplace", "l1": "1", "scale": "7/3"}'
    """
    name = next(name for name, kind in _NAMES.items() if type(event) is kind)
    fields: dict[str, str | int] = {"event": name}
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        fields[field.name] = str(value) if isinstance(value, Fraction) else value
    line = json.dumps(fields)
    from_json(line)  # a line that cannot be read back is refused before it is written
    return line


def from_json(text: str) -> Event:
    """The event in a record; ValueError for every record that this version does not understand.

    >>> from_json('{"event": "laplace", "l1": "1", "scale": "7/3"}')
    LaplaceEvent(l1=Fraction(1, 1), scale=Fraction(7, 3))
    """
    fields = json.loads(text)
    if not isinstance(fields, dict):
        raise ValueError(f"not an event: {text[:80]}")
    kind = _NAMES.get(str(fields.pop("event", None)))
    if kind is None:
        raise ValueError(f"unknown event: {text[:80]}")
    try:
        return kind(**{name: _read(name, value) for name, value in fields.items()})
    except TypeError as error:
        raise ValueError(f"event with unknown or missing fields: {text[:80]}") from error


def cost_of(event: Event) -> Cost:
    """The price of an event, from its record alone.

    Claim: a step that the event describes truthfully has the guarantee that ``Cost`` states.
    Assumes: nothing but the record.
    Argument: Laplace is (l1/scale)-DP, since neighbouring weights differ by exp(1/scale) at most
        for each step of 1. Gaussian is l2_squared/(2 variance)-zCDP. A truncated geometric
        (epsilon, delta)-DP step is delta-close to an epsilon-DP one, so delta-approximately
        zCDP. A threshold adds its delta to either guarantee. An exponential choice has log-ratios
        in an interval of length span_g / scale for each group g: it is epsilon-DP with their sum,
        and zCDP with an eighth of the sum of their squares (Cesar and Rogers 2021).

    >>> cost_of(LaplaceEvent(Fraction(1), Fraction(2))).epsilon
    Fraction(1, 2)
    """
    match event:
        case LaplaceEvent(l1, scale):
            return Cost(epsilon=l1 / scale, rho=rho_of_pure(l1 / scale))
        case GaussianEvent(l2_squared, variance, delta):
            rho = l2_squared / (2 * variance)
            return Cost(epsilon=epsilon_of_zcdp(rho, delta), delta=delta, rho=rho)
        case TruncatedGeometricEvent(epsilon, delta):
            return Cost(epsilon, delta, rho_of_pure(epsilon), delta)
        case ThresholdEvent(delta=delta):
            return Cost(delta=delta, threshold_delta=delta)
        case ExponentialEvent(span, span_squared, scale):
            rho = min(span_squared / (8 * scale**2), rho_of_pure(span / scale))
            return Cost(epsilon=span / scale, rho=rho)
        case _:
            assert_never(event)


def _read(name: str, value: object) -> object:
    if name in ("kind", "groups"):
        expected: type = str if name == "kind" else int
        if type(value) is not expected:
            raise ValueError(f"not a {name}: {value!r}")
        return value
    if not isinstance(value, str):
        raise ValueError(f"not an exact number: {value!r}")
    return parse_exact(value)


def _positive(*values: Fraction) -> None:
    for value in values:
        if value <= 0:
            raise ValueError(f"out of range in an event: {value}")
