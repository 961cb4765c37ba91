"""Utilities against their definition, value by value; values in the type of their column."""

# ruff: noqa: DTZ001 (naive by design)

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.services import Seeded

from dpsql.bound.buckets import Buckets, buckets
from dpsql.bound.sensitivity import Sensitivity
from dpsql.catalog.statistic import Mode, Quantile
from dpsql.ir.domain import Domain
from dpsql.ir.expressions import Column, Shape
from dpsql.policy.types import Kind, Scalar
from dpsql.price.priced import Chosen
from dpsql.privacy.mechanisms import Exponential
from dpsql.release import choose
from dpsql.release.choose import choose_values, histograms, utilities

Counts = dict[int, int]
NOTHING = Sensitivity(Fraction(1), Fraction(1))


def item(
    fraction: Fraction, *, extreme: bool = False, scale: Fraction = Fraction(1, 10**9),
    kind: Kind = Kind.INTEGER, low: Scalar = 0, high: Scalar = 9, shown: Kind | None = None,
    shift: int = 0, grain: str | None = None,
) -> Chosen:  # fmt: skip
    value = Column(1, "x", Shape(kind, domain=Domain(low, high, grain=grain)))
    quantile = Quantile(value, low, high, fraction, extreme, shown or kind)
    at = buckets(quantile, None)
    return Chosen(quantile, shift, NOTHING, Exponential(scale, at.count), at)


def column(*groups: Counts | None) -> pa.ChunkedArray:
    kind = pa.list_(pa.struct([("b", pa.int64()), ("n", pa.int64())]))
    lists = [None if g is None else [{"b": b, "n": n} for b, n in g.items()] for g in groups]
    return pa.chunked_array([pa.array(lists[:1], kind), pa.array(lists[1:], kind)])


def expanded(counts: Counts, of: Chosen) -> list[int]:
    """The utility of every bin, in order."""
    found = histograms(column(counts))
    runs, _ = utilities(found, of)
    widths, last = [], 0
    for b in sorted(counts):
        widths += [b - last, 1]
        last = b + 1
    widths.append(of.buckets.count - last)
    return [int(v) for v in np.repeat(runs, widths)]


def defined(counts: Counts, of: Chosen) -> list[Fraction]:
    """Minus the distance in rows between the rank asked for and the ranks of a bin."""
    total, one = Fraction(sum(counts.values())), 1 << of.shift
    assert isinstance(of.statistic, Quantile)
    fraction = of.statistic.fraction
    target = fraction * total - Fraction(one, 2 * fraction.denominator)
    if fraction == 0:
        target = Fraction(one, 2)
    if of.statistic.extreme:
        depth = max(of.depth, one) - Fraction(one, 2)
        target = max(total - depth, total / 2) if fraction else min(depth, total / 2)
    found, below = [], Fraction(0)
    for b in range(of.buckets.count):
        upto = below + counts.get(b, 0)
        found.append(-max(below - target, target - upto, Fraction(0)))
        below = upto
    return found


histogram = st.dictionaries(st.integers(0, 9), st.integers(0, 30), max_size=6)
fractions = st.sampled_from(
    [Fraction(0), Fraction(1, 2), Fraction(9, 10), Fraction(1, 3), Fraction(1)]
)
depths = st.sampled_from([Fraction(1, 10**9), Fraction(1, 3), Fraction(2)])


@given(histogram, fractions, depths, st.booleans(), st.sampled_from([0, 3]))
def test_utilities_are_as_defined(
    counts: Counts, fraction: Fraction, scale: Fraction, extreme: bool, shift: int
) -> None:
    of = item(
        Fraction(round(fraction)) if extreme else fraction,
        extreme=extreme,
        scale=scale,
        shift=shift,
    )
    units = 2 * of.statistic.fraction.denominator
    assert expanded(counts, of) == [u * units for u in defined(counts, of)]


@given(histogram, histogram, fractions, depths, st.booleans())
def test_rows_move_utilities_by_no_more_than_their_weight_and_the_steepness(
    counts: Counts, more: Counts, fraction: Fraction, scale: Fraction, extreme: bool
) -> None:
    of = item(Fraction(round(fraction)) if extreme else fraction, extreme=extreme, scale=scale)
    both = {b: counts.get(b, 0) + more.get(b, 0) for b in {*counts, *more}}
    moves = [a - b for a, b in zip(expanded(both, of), expanded(counts, of), strict=True)]
    steep = 2 * of.statistic.fraction.denominator * of.statistic.steepness
    assert max(map(abs, moves)) <= sum(more.values()) * steep


def test_the_steepness_is_reached() -> None:
    """So that a smaller one would be noticed."""
    of = item(Fraction(9, 10))
    before, after = expanded({3: 10}, of), expanded({3: 10, 9: 1}, of)
    assert min(a - b for a, b in zip(after, before, strict=True)) == -18


def test_sums_beyond_64_bits_are_exact() -> None:
    of = item(Fraction(123_457, 10**6), shift=40)
    counts = {2: 1 << 60, 7: 3 << 60}
    assert expanded(counts, of) == [u * 2 * 10**6 for u in defined(counts, of)]
    assert choose_values(column(counts), of, Seeded(1)).to_pylist() == [2]


@pytest.mark.parametrize("bits", range(58, 72))
@pytest.mark.parametrize("fraction", [Fraction(0), Fraction(1, 2), Fraction(9, 10), Fraction(1)])
def test_utilities_about_as_large_as_64_bits_are_exact(bits: int, fraction: Fraction) -> None:
    """They are as far apart as all weights together, times the units of a weight of one.

    It catches sums that are taken for small enough for 64 bits, and wrap.
    """
    of = item(fraction)
    units = 2 * fraction.denominator
    total = 2**bits // units
    for each in (total // 4, total // 4 - 1, total // 4 + 1):
        counts = dict.fromkeys((1, 4, 5, 8), min(each, 2**63 - 1))
        assert expanded(counts, of) == [u * units for u in defined(counts, of)]


def rank(values: list[int], fraction: Fraction) -> int:
    """The discrete quantile."""
    place = max(1, -(-len(values) * fraction.numerator // fraction.denominator))
    return sorted(values)[place - 1]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), fractions)
def test_without_noise_it_is_the_discrete_quantile(values: list[int], fraction: Fraction) -> None:
    counts = {v: values.count(v) for v in values}
    assert choose_values(column(counts), item(fraction), Seeded(1)).to_pylist() == [
        rank(values, fraction)
    ]
    ends = choose_values(
        column(counts, counts), item(fraction := Fraction(0), extreme=True), Seeded(1)
    )
    assert ends.to_pylist() == [min(values)] * 2
    assert choose_values(
        column(counts), item(Fraction(1), extreme=True), Seeded(1)
    ).to_pylist() == [max(values)]


def test_extremes_stay_inside_what_many_rows_reach() -> None:
    """Under noise, a maximum is seldom a value above all rows, and of few rows it is the median."""
    many = dict.fromkeys(range(5), 1000)
    noisy = item(Fraction(1), extreme=True, scale=Fraction(10), high=4095)
    found = np.array(choose_values(column(*[many] * 400), noisy, Seeded(2)))
    assert np.mean(found > 4) <= 0.08
    assert set(found[found <= 4].tolist()) == {4}
    few = expanded({2: 3, 4: 1, 6: 3}, item(Fraction(1), extreme=True, scale=Fraction(1)))
    assert few.index(max(few)) == 4


def test_empty_groups_have_values_of_the_whole_range() -> None:
    of = item(Fraction(1, 2))
    found = choose_values(column(*[None, {}] * 500), of, Seeded(3)).to_pylist()
    assert set(found) == set(range(10))


@pytest.mark.parametrize(
    ("of", "counts", "expected"),
    [
        (item(Fraction(1, 2), shown=Kind.DOUBLE), {4: 3}, 4.0),
        (
            item(Fraction(1, 2), kind=Kind.DATE, low=date(2024, 1, 1), high=date(2024, 12, 31)),
            {31: 2}, date(2024, 2, 1),
        ),
        (
            item(
                Fraction(1, 2), kind=Kind.TIMESTAMP, low=datetime(2024, 1, 1),
                high=datetime(2024, 1, 3), grain="day",
            ),
            {2: 2}, datetime(2024, 1, 3),
        ),
        (item(Fraction(1, 2), kind=Kind.DOUBLE, low=3, high=3), {0: 2}, 3.0),
        (item(Fraction(1, 2), low=-(2**63), high=-(2**63)), {0: 2}, -(2**63)),
    ],
)  # fmt: skip
def test_values_have_the_type_of_their_column(of: Chosen, counts: Counts, expected: Any) -> None:
    assert choose_values(column(counts), of, Seeded(4)).to_pylist() == [expected]


def test_values_are_anywhere_in_their_bin() -> None:
    doubles = item(Fraction(1, 2), kind=Kind.DOUBLE, low=0, high=4096)
    found = choose_values(column(*[{7: 5}] * 300), doubles, Seeded(5)).to_pylist()
    width = float(doubles.buckets.width)
    assert 7 * width <= min(found) < 7.1 * width < 7.9 * width < max(found) < 8 * width
    wide = item(Fraction(1, 2), low=0, high=10**6)
    last = wide.buckets.count - 1
    start = last * int(wide.buckets.width)
    found = choose_values(column(*[{last: 5}] * 3000), wide, Seeded(6)).to_pylist()
    assert (min(found), max(found)) == (start, 10**6)


def commonest(kind: Kind, members: tuple[Scalar, ...], scale: Fraction) -> Chosen:
    mode = Mode(Column(1, "x", Shape(kind)), None, None, members, kind)
    at = buckets(mode, None)
    return Chosen(mode, 0, NOTHING, Exponential(scale, at.count), at)


@pytest.mark.parametrize(
    ("kind", "members", "expected"),
    [
        (Kind.TEXT, ("at", "de", "fr"), "de"),
        (Kind.DOUBLE, (Fraction(1, 2), Fraction(9, 4)), 2.25),
        (Kind.BOOLEAN, (False, True), True),
        (Kind.DATE, (date(2024, 1, 1), date(2024, 2, 1)), date(2024, 2, 1)),
    ],
)
def test_the_commonest_of_a_list(kind: Kind, members: tuple[Scalar, ...], expected: Any) -> None:
    of = commonest(kind, members, Fraction(1, 100))
    assert choose_values(column({0: 3, 1: 5}), of, Seeded(8)).to_pylist() == [expected]


def test_the_commonest_is_chosen_by_its_count() -> None:
    """Counts 2 and 0, 0 at scale 1: e squared to 1 to 1, whichever bins have rows."""
    of = commonest(Kind.INTEGER, (5, 6, 7), Fraction(1))
    found = np.array(choose_values(column(*[{1: 2}] * 20_000), of, Seeded(9)))
    share = np.exp(2) / (np.exp(2) + 2)
    assert abs((found == 6).mean() - share) < 4 * np.sqrt(share * (1 - share) / 20_000)
    assert abs((found == 5).mean() - (found == 7).mean()) < 0.02


def test_bins_may_come_in_any_order() -> None:
    of = item(Fraction(1, 2))
    assert choose_values(column({9: 1, 2: 5, 0: 1}, {3: 1}), of, Seeded(7)).to_pylist() == [2, 3]
    assert isinstance(of.buckets, Buckets)
    assert choose_values(pa.chunked_array([], column({}).type), of, Seeded(7)).to_pylist() == []


@pytest.mark.parametrize("far", [10, 2**62 - 1])
def test_bins_are_read_in_order_however_far_apart(far: int) -> None:
    lists = [[{"b": far, "n": 1}, {"b": 0, "n": 2}], None, [{"b": 7, "n": 3}, {"b": 3, "n": 4}]]
    found = histograms(pa.chunked_array([pa.array(lists)]))
    assert found.bins.tolist() == [0, far, 3, 7]
    assert found.weights.tolist() == [2, 1, 4, 3]
    assert found.sizes.tolist() == [2, 0, 2]


LISTS = st.lists(
    st.lists(st.tuples(st.integers(-3, 40), st.integers(-9, 2**61)), max_size=12),
    min_size=1, max_size=5,
)  # fmt: skip


@given(LISTS, st.sampled_from([1, 10**6, 10**17]))
def test_a_bin_that_is_listed_twice_weighs_what_it_weighs_in_all(
    lists: list[list[tuple[int, int]]], far: int
) -> None:
    """In a table where bins are close together, by sorting where they are not."""
    kind = pa.list_(pa.struct([("b", pa.int64()), ("n", pa.int64())]))
    values = [[{"b": b * far, "n": n % 2**58} for b, n in each] for each in lists]
    found = histograms(pa.chunked_array([pa.array(values, kind)]))
    expected = []
    for each in values:
        merged: dict[int, int] = {}
        for pair in each:
            merged[pair["b"]] = merged.get(pair["b"], 0) + pair["n"]
        expected.append(sorted(merged.items()))
    assert found.sizes.tolist() == [len(e) for e in expected]
    flat = [pair for e in expected for pair in e]
    assert list(zip(found.bins.tolist(), found.weights.tolist(), strict=True)) == flat


@given(
    st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**64), st.sampled_from([1, 7, 86_400_000_000]),
    st.lists(st.tuples(st.integers(0, 2**63), st.integers(0, 2**64 - 1)), min_size=1, max_size=8),
)  # fmt: skip
@example(-(2**63), 2**64 - 1, 1, [(0, 0), (65535, 2**64 - 1)])
def test_whole_values_are_those_of_their_bins(
    first: int, size: int, grain: int, asked: list[tuple[int, int]]
) -> None:
    last = min(first + size, 2**63 - 1)
    steps = (last - first) // grain + 1
    each = -(-steps // 1000)
    count = -(-steps // each)
    at = Buckets(Kind.INTEGER, Fraction(first), Fraction(each * grain), count, last, grain)
    bins = np.array([b % count for b, _ in asked])
    found = choose._whole(bins, np.array([p for _, p in asked], dtype=np.uint64), at)
    for value, b, (_, place) in zip(found.tolist(), bins.tolist(), asked, strict=True):
        start = first + b * each * grain
        inside = range(start, min(start + each * grain, last + 1), grain)
        assert value == inside[place % len(inside)]


def weighed(of: Chosen, counts: Counts, draws: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How often each bin is chosen."""
    chosen = choose_values(column(*[counts] * draws), of, Seeded(5))
    return np.bincount(np.asarray(chosen), minlength=of.buckets.count) / draws


@pytest.mark.parametrize("counts", [{}, {3: 4, 6: 2}], ids=["no rows", "rows"])
def test_bins_count_as_much_as_their_prior(counts: Counts) -> None:
    """Each bin has a chance of its prior times exp(utility / scale)."""
    prior = (9, 1, 1, 5, 1, 1, 3, 1, 20, 1)
    of = replace(item(Fraction(1), extreme=True, scale=Fraction(2)), prior=prior)
    far = np.array([float(u) for u in defined(counts, of)])
    exact = np.array(prior) * np.exp(far / 2)
    found = weighed(of, counts, 20_000)
    assert found == pytest.approx(exact / exact.sum(), abs=0.015)
    flat = weighed(replace(of, prior=(1,) * 10), counts, 20_000)
    assert abs(flat - exact / exact.sum()).max() > 0.05, "the test sees a prior"


def test_a_prior_puts_the_target_nearer_to_the_end() -> None:
    of = item(Fraction(1), extreme=True, scale=Fraction(2))
    assert (of.depth, replace(of, prior=(1,) * 10).depth) == (of.noise.half_width(), 9)
