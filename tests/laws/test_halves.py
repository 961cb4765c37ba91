"""A sum and a count that are noised as two halves err as predicted, together and apart."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from support.corpus import SHOP
from support.measured import plan_of
from support.services import Seeded
from test_bounding_faults import ORDERS, _parts, breaches
from test_counts import asked, column, people

from dpsql.plan.bounding import Bounding
from dpsql.plan.price import price
from dpsql.plan.priced import Halves, Noised, PricedMeasurement
from dpsql.plan.request import Request
from dpsql.release.noise import HalfNoise, halves

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
    parts = _parts(ORDERS, Bounding(rows=7, groups=4, bits=20))
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
