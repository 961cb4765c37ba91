from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.privacy.accounting import epsilon_of_zcdp, rho_of_pure
from dpsql.privacy.cost import Cost
from dpsql.privacy.events import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    ThresholdEvent,
    TruncatedGeometricEvent,
    cost_of,
    from_json,
    to_json,
)

positive = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)
deltas = st.fractions(min_value=Fraction(1, 10**15), max_value=Fraction(9, 10))
events = st.one_of(
    st.builds(LaplaceEvent, positive, positive),
    st.builds(GaussianEvent, positive, positive, deltas),
    st.builds(TruncatedGeometricEvent, positive, deltas),
    st.builds(ExponentialEvent, positive, positive, positive),
    st.builds(
        ThresholdEvent, st.sampled_from(["laplace", "gaussian"]), deltas, st.integers(1, 10**6)
    ),
)


@given(events)
def test_a_record_reads_back_as_it_was(event: Event) -> None:
    assert from_json(to_json(event)) == event


RECORDS: dict[str, tuple[Event, Cost]] = {
    '{"event": "laplace", "l1": "3/7", "scale": "3"}': (
        LaplaceEvent(Fraction(3, 7), Fraction(3)),
        Cost(Fraction(1, 7), Fraction(0), rho_of_pure(Fraction(1, 7)), Fraction(0)),
    ),
    '{"event": "gaussian", "l2_squared": "2", "variance": "50", "delta": "1/1000000"}': (
        GaussianEvent(Fraction(2), Fraction(50), Fraction(1, 10**6)),
        Cost(
            epsilon_of_zcdp(Fraction(1, 50), Fraction(1, 10**6)),
            Fraction(1, 10**6),
            Fraction(1, 50),
            Fraction(0),
        ),
    ),
    '{"event": "truncated_geometric", "epsilon": "1/2", "delta": "1/100"}': (
        TruncatedGeometricEvent(Fraction(1, 2), Fraction(1, 100)),
        Cost(Fraction(1, 2), Fraction(1, 100), rho_of_pure(Fraction(1, 2)), Fraction(1, 100)),
    ),
    '{"event": "threshold", "kind": "gaussian", "delta": "1/1000", "groups": 3}': (
        ThresholdEvent("gaussian", Fraction(1, 1000), 3),
        Cost(Fraction(0), Fraction(1, 1000), Fraction(0), Fraction(1, 1000)),
    ),
    '{"event": "exponential", "span": "6", "span_squared": "12", "scale": "30"}': (
        ExponentialEvent(Fraction(6), Fraction(12), Fraction(30)),
        Cost(Fraction(1, 5), Fraction(0), Fraction(12, 8 * 900), Fraction(0)),
    ),
    '{"event": "exponential", "span": "1", "span_squared": "1", "scale": "1/100"}': (
        ExponentialEvent(Fraction(1), Fraction(1), Fraction(1, 100)),
        Cost(Fraction(100), Fraction(0), rho_of_pure(Fraction(100)), Fraction(0)),
    ),
}


@pytest.mark.parametrize("record", RECORDS)
def test_old_records_keep_their_meaning(record: str) -> None:
    """This table only grows: a line that has to be edited is a broken promise."""
    event, cost = RECORDS[record]
    assert from_json(record) == event
    assert to_json(event) == record
    assert cost_of(event) == cost


def test_a_gaussian_without_a_delta_is_read_at_a_billionth() -> None:
    record = '{"event": "gaussian", "l2_squared": "1", "variance": "1"}'
    assert from_json(record) == GaussianEvent(Fraction(1), Fraction(1), Fraction(1, 10**9))


@pytest.mark.parametrize(
    "record",
    [
        "", "[]", "3", "{}", "not json",
        '{"event": "laplace"}',
        '{"event": "snapping", "l1": "1"}',
        '{"event": ["laplace"], "l1": "1", "scale": "1"}',
        '{"event": "laplace", "l1": "1", "scale": "1", "more": "1"}',
        '{"event": "laplace", "l1": 1, "scale": "1"}',
        '{"event": "laplace", "l1": 0.5, "scale": "1"}',
        '{"event": "laplace", "l1": "nan", "scale": "1"}',
        '{"event": "laplace", "l1": "0", "scale": "1"}',
        '{"event": "laplace", "l1": "1", "scale": "-1"}',
        '{"event": "gaussian", "l2_squared": "1", "variance": "1", "delta": "1"}',
        '{"event": "exponential", "span": "1", "span_squared": "0", "scale": "1"}',
        '{"event": "exponential", "span": "1", "scale": "1"}',
        '{"event": "truncated_geometric", "epsilon": "1", "delta": "0"}',
        '{"event": "threshold", "kind": "sips", "delta": "1/9", "groups": 3}',
        '{"event": "threshold", "kind": 1, "delta": "1/9", "groups": 3}',
        '{"event": "threshold", "kind": "laplace", "delta": "1/9", "groups": true}',
        '{"event": "threshold", "kind": "laplace", "delta": "1/9", "groups": "3"}',
        '{"event": "threshold", "kind": "laplace", "delta": "1/9", "groups": 0}',
    ],
)  # fmt: skip
def test_records_that_are_not_understood_are_refused(record: str) -> None:
    with pytest.raises(ValueError):
        from_json(record)


def test_numbers_are_written_exactly() -> None:
    record = json.loads(to_json(LaplaceEvent(Fraction(1, 3), Fraction(10**30 + 1, 7))))
    assert record["scale"] == "1000000000000000000000000000001/7"


def test_what_would_not_read_back_is_not_written() -> None:
    with pytest.raises(ValueError):
        to_json(LaplaceEvent(Fraction(1), Fraction(1, 10**2000)))
    with pytest.raises(ValueError):
        to_json(LaplaceEvent(1, 2))  # type: ignore[arg-type]


@given(events, events)
def test_costs_add_in_every_currency(one: Event, two: Event) -> None:
    a, b = cost_of(one), cost_of(two)
    both = a + b
    for name in ("epsilon", "delta", "rho", "threshold_delta"):
        assert getattr(both, name) == getattr(a, name) + getattr(b, name)
    assert a + Cost.zero() == a
    assert both.pure == (a.pure and b.pure)


@pytest.mark.parametrize("name", ["epsilon", "delta", "rho", "threshold_delta"])
def test_a_cost_is_never_a_refund(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Cost(**{name: Fraction(-1, 10**9)})
