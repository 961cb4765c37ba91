"""A sum and a count that are noised as two halves err as predicted, together and apart."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from support.corpus import SHOP
from support.measured import broken, exact, plan_of, planned, removed
from support.services import FreeLedger, Seeded, SpyEngine, noon
from test_bounding_faults import ORDERS, _parts, breaches
from test_counts import asked, column, people

from dpsql.bound import RowWeights
from dpsql.bound.sensitivity import Sensitivity
from dpsql.catalog.statistic import Rows, Total
from dpsql.engines.facts import Facts
from dpsql.ir.expressions import integer
from dpsql.plan.nodes import Cells
from dpsql.policy.load import parse
from dpsql.price.halves import pair_halves
from dpsql.price.price import WIDEST_NOISE, price
from dpsql.price.priced import Halves, Noised, PricedMeasurement, Share
from dpsql.price.request import Request
from dpsql.privacy.mechanisms import DiscreteLaplace
from dpsql.release.noise import HalfNoise, halves
from dpsql.service import Service

SQL = "SELECT cell, COUNT(*) AS n, SUM(value) AS s, AVG(value) AS a FROM people {} GROUP BY cell"
NOBODY = SQL.format("WHERE id < 0")


def test_both_numbers_err_less_than_by_themselves() -> None:
    priced, reply = asked(NOBODY, "mechanism = 'laplace'", opened=people())
    [part] = priced.parts
    assert priced.cost.epsilon == 1
    assert len(part.noised) == 2, "the mean needs nothing that the sum and the count do not"
    assert [e.scale / e.l1 for e in priced.events] == [1]  # type: ignore[union-attr]
    count, total = column(reply, 1), column(reply, 2)
    assert count.std() == pytest.approx(2, rel=0.03), "the root of 2 times 2"
    assert total.std() == pytest.approx(np.sqrt(2 * (30**2 + 10**2)), rel=0.03)
    for item, seen in zip(part.noised, (count, total - 10 * count), strict=True):
        assert item.standard_deviation == pytest.approx(seen.std(), rel=0.03)
        inside = (np.abs(seen) <= item.half_width).mean()
        assert 0.945 < inside < 0.97, "whole numbers have a little more inside"


def test_numbers_that_are_rounded_have_the_noise_that_rounding_leaves() -> None:
    for epsilon, least in ((3, 1e-3), (6, 1e-6), (10**9, 0)):
        plan = plan_of("SELECT COUNT(*), AVG(age) FROM customers", SHOP)
        wanted = Request(Fraction(epsilon), Fraction(0), mechanism="laplace")
        [count, total] = price(plan, wanted).parts[0].noised
        assert least <= count.standard_deviation <= 2.001 / epsilon
        assert total.standard_deviation > 0
    for epsilon in (5, 8):
        wanted = Request(Fraction(epsilon), Fraction(0), mechanism="laplace")
        count = price(plan, wanted).parts[0].noised[0]
        assert isinstance(count, Noised)
        drawn = count.term.sample(Seeded(epsilon), 1_000_000)
        assert count.standard_deviation == pytest.approx(np.rint(drawn).std(), rel=0.15)


def test_the_halves_are_independent_and_one_draw_for_both_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def apart() -> float:
        _, reply = asked(NOBODY, "mechanism = 'laplace'", opened=people())
        count, total = column(reply, 1), column(reply, 2)
        low, high = total + 10 * count, 30 * count - total
        return float(np.corrcoef(low, high)[0, 1])

    assert abs(apart()) < 0.03
    real = HalfNoise.released

    def once(self: HalfNoise, *args: object) -> object:
        self.entropy = Seeded(3)
        found = real(self, *args)  # type: ignore[arg-type]
        for key, (one, _) in self.drawn.items():
            self.drawn[key] = one, one
        return found

    monkeypatch.setattr(HalfNoise, "released", once)
    assert apart() > 0.9


def test_halves_whose_price_is_of_one_are_noticed() -> None:
    parts = _parts(ORDERS, RowWeights(rows=7, groups=4))
    assert any(_is_half(item) for part in parts for item in part.noised)
    assert breaches(parts) == []
    assert any("halves" in said for said in breaches([_cheap(part) for part in parts]))


def _is_half(item: object) -> bool:
    return isinstance(item, Noised) and item.halves is not None


def _cheap(part: PricedMeasurement) -> PricedMeasurement:
    """The price of a total alone, which moves by half as much as its halves together."""
    noised = []
    for item in part.noised:
        if isinstance(item, Noised) and item.halves is not None:
            item = replace(item, halves=replace(item.halves, l1=item.halves.l1 / 2))  # noqa: PLW2901
        noised.append(item)
    return replace(part, noised=tuple(noised))


def test_halves_too_wide_for_the_sampler_are_taken_in_coarser_steps() -> None:
    plan = plan_of("SELECT channel, AVG(amount) FROM orders GROUP BY channel", SHOP)
    [part] = price(plan, Request(Fraction(1, 10**4), Fraction(0))).parts
    items = [i for i in part.noised if isinstance(i, Noised)]
    coarse = [i.halves.coarse for i in items if i.halves is not None]
    assert coarse[0] > 0
    assert coarse == coarse[:1] * 2
    [fine] = price(plan, Request(Fraction(10), Fraction(0))).parts
    ratio = part.noised[0].standard_deviation / fine.noised[0].standard_deviation
    assert ratio == pytest.approx(10**5, rel=1e-3)


EVENTS = """
source: {engine: duckdb, path: none.duckdb}
data_version: "1"
units: {person: {table: people, key: id}}
tables:
  people: {unit: person, columns: {id: {type: bigint}}}
  events:
    unit: person
    foreign_keys: [{columns: [id], references: people}]
    max_rows_per_unit: 5
    columns:
      id: {type: bigint}
      value: {type: double, range: [0, 70]}
      cell: {type: integer, range: [1, 64]}
accounts: {dataset: {epsilon: 1}}
roles: {analyst: {search: off, epsilon: 1, session: {epsilon: 1}}}
"""


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1, 10**7), Fraction(1, 10**8)])
def test_every_group_that_a_unit_is_in_may_be_rounded_up(epsilon: Fraction, size: int) -> None:
    """A unit may have five rows, and has one in each of 64 groups: each weighs a little."""
    policy = parse(EVENTS, Path("events.yaml"), "events.yaml")
    here = Service(
        policy, SpyEngine(lambda _: pa.table({})), FreeLedger(), clock=noon, facts=Facts()
    )
    plan = planned("SELECT cell, AVG(value) FROM events GROUP BY cell", here)
    wanted = Request(epsilon, Fraction(0), sizes={"person": size}, bounding="row weights")
    [part] = price(plan, wanted).parts
    [of, _] = [i.halves for i in part.noised if isinstance(i, Noised)]
    assert of is not None
    assert of.coarse > 0
    assert part.bounding.groups < 64
    data = duckdb.connect(config={"threads": 1})
    data.execute("CREATE TABLE people AS SELECT i AS id FROM range(4) AS r(i)")
    data.execute(
        "CREATE TABLE events AS SELECT u AS id, 31.234 + u AS value, c AS cell FROM range(4) AS"
        " r(u), range(1, 65) AS s(c)"
    )
    before = exact(data, [part])
    after = removed(data, [f"DELETE FROM events WHERE id < {size}"], [part])
    assert list(broken(part, before[0], after[0])) == []


def test_both_halves_of_every_group_are_rounded_up() -> None:
    """A unit that moves each half of each group by a little more than ten steps moves it by eleven.

    What others have there is short of the next step by one row's share of it. The price is reached,
    so that one which allows a single step for each group, not one for each half, is noticed.
    """
    groups, rows, epsilon, half = 64, 5, Fraction(1, 2**28), 2**15 + 1
    bounding = RowWeights(rows=rows, groups=rows)
    total = Total(integer(1), Fraction(0), Fraction(2 * half), centre=Fraction(half))
    share = Share("laplace", 2, epsilon, None, *2 * (Fraction(0),))
    noise, moved = DiscreteLaplace(Fraction(1)), Sensitivity(Fraction(1), Fraction(1))
    items = tuple(Noised(s, 0, moved, noise) for s in (total, Rows()))
    [of, _] = [
        i.halves
        for i in pair_halves(items, bounding, share, WIDEST_NOISE, None, Cells("", groups))
        if isinstance(i, Noised)
    ]
    assert of is not None
    assert of.reach == half
    weight = rows * 2**20 // groups
    others = ((1 << of.coarse >> 1) - 1) // of.reach
    values = np.zeros(groups, dtype=np.int64)
    sides = [halves(values, values + count, of) for count in (others, others + weight)]
    steps = [abs(one - other) for one, other in zip(*sides, strict=True)]
    assert {int(n) for step in steps for n in step} == {11}
    assert of.l1 - 1 < sum(int(step.sum()) for step in steps) <= of.l1


@pytest.mark.parametrize("digits", range(6, 40, 3))
def test_halves_that_rounding_would_drown_are_none(digits: int) -> None:
    bounding = RowWeights(rows=1, groups=1, bits=1)
    total = Total(integer(1), Fraction(0), Fraction(2) ** 40, centre=Fraction(2) ** 39)
    share = Share("laplace", 2, Fraction(1, 10**digits), None, *2 * (Fraction(0),))
    noise = DiscreteLaplace(Fraction(1))
    items = [Noised(s, 0, Sensitivity(Fraction(1), Fraction(1)), noise) for s in (total, Rows())]
    found = pair_halves(tuple(items), bounding, share, WIDEST_NOISE, None, Cells("", 1000))
    assert all(isinstance(i, Noised) for i in found)
    assert len({i.halves is None for i in found if isinstance(i, Noised)}) == 1
    for item in found:
        assert isinstance(item, Noised)
        assert item.noise.standard_deviation() < 2 * WIDEST_NOISE
    assert (found[0] == items[0]) == (digits > 6)


def test_halves_of_large_numbers_are_exact() -> None:
    of = Halves(1, 2**23, 2**20, 3, Fraction(1))
    total, count = np.array([-(2**45), 2**45]), np.array([2**40, 2**41])
    one, other = halves(total, count, of)
    for i in range(2):
        t, n = int(total[i]) << 20, int(count[i]) << 23
        assert (int(one[i]), int(other[i])) == ((n + t + 4) >> 3, (n - t + 4) >> 3)
    small, _ = halves(np.array([5]), np.array([1]), replace(of, one=1, coarse=0))
    assert small.dtype == np.int64


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), 1, 10**3, 10**9])
def test_a_half_by_itself_costs_no_more_than_both(epsilon: Fraction) -> None:
    wanted = Request(Fraction(epsilon), Fraction(0), mechanism="laplace")
    [part] = price(plan_of("SELECT COUNT(*), SUM(age) FROM customers", SHOP), wanted).parts
    for item in part.noised:
        assert isinstance(item, Noised)
        assert item.halves is not None
        alone = item.alone
        assert alone.sensitivity.l1 / alone.noise.scale <= epsilon  # type: ignore[union-attr]
