"""Integers of any size, noised and written in the statistic's own units."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from support.corpus import SHOP
from support.measured import plan_of
from support.services import Seeded

from dpsql.bound.sensitivity import Sensitivity
from dpsql.catalog.statistic import Rows, Total
from dpsql.diagnostics.refusal import EngineFailed
from dpsql.engines.exact_rows import ExactRows
from dpsql.ir.expressions import Column, Shape, integer
from dpsql.policy.types import Kind
from dpsql.price.price import price
from dpsql.price.priced import Halves, Noised
from dpsql.price.request import Request
from dpsql.privacy.mechanisms import DiscreteLaplace
from dpsql.release.noise import HalfNoise, WrongShape, add_noise, decode_steps, integers, noise
from dpsql.release.postprocess import cast_columns

TINY = DiscreteLaplace(Fraction(1, 10**6))
ONE = Sensitivity(Fraction(1), Fraction(1))
HUGE = 3 * 2**100
DECIMAL = pa.decimal128(38, 0)
PURE = Request(Fraction(1), Fraction(0))


def item(*, shift: int = 0, whole: bool = True) -> Noised:
    total = Total(integer(1), Fraction(0), Fraction(1), whole=whole)
    return Noised(total, shift, ONE, TINY)


def column(*values: int, kind: pa.DataType = DECIMAL) -> pa.ChunkedArray:
    return pa.chunked_array(
        [pa.array([Decimal(v) if kind == DECIMAL else v for v in values], kind)]
    )


@pytest.mark.parametrize(
    "values", [(), (0, -1, 2**62, -(2**63)), (HUGE, -HUGE, 5), (2**63, 0), (-(2**63) - 1,)]
)
def test_integers_of_128_bits_are_read_exactly(values: tuple[int, ...]) -> None:
    assert [int(v) for v in integers(column(*values))] == list(values)


def test_a_part_of_a_column_is_read_from_its_place() -> None:
    assert list(integers(column(1, 2, 3, 4).slice(1, 2))) == [2, 3]
    assert list(integers(pa.chunked_array([], DECIMAL))) == []
    two = pa.chunked_array([column(1).chunk(0), column(2).chunk(0)])
    assert list(integers(two)) == [1, 2]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64()])
def test_small_integers_are_read(kind: pa.DataType) -> None:
    assert list(integers(column(1, -2, 3, kind=kind))) == [1, -2, 3]


@pytest.mark.parametrize("wrong", [pa.array([None], pa.int64()), pa.array([1.5]), pa.array(["1"])])
def test_what_is_not_whole_is_no_statistic(wrong: pa.Array) -> None:
    with pytest.raises(WrongShape):
        integers(pa.chunked_array([wrong]))


@pytest.mark.parametrize("value", [0, 2**60, 2**62, -(2**63), HUGE, -HUGE])
def test_noise_is_added_exactly_at_any_size(value: int) -> None:
    noisy = add_noise(integers(column(value)), item(), Seeded(1))
    assert [int(v) for v in noisy] == [value]


def test_a_wide_noise_does_not_wrap() -> None:
    wide = Noised(Rows(), 0, ONE, DiscreteLaplace(Fraction(2**38)))
    near = np.full(500, 2**63 - 1, dtype=np.int64)
    exact = [int(v) for v in add_noise(near, wide, Seeded(2))]
    drawn = [int(v) for v in wide.noise.sample(Seeded(2), 500)]
    assert exact == [2**63 - 1 + d for d in drawn]


def test_whole_statistics_are_rounded_to_the_nearest_and_kept_in_64_bits() -> None:
    steps = np.array([0, 7, 8, -8, -9, 24])
    assert decode_steps(steps, item(shift=4)).to_pylist() == [0, 0, 1, 0, -1, 2]
    assert decode_steps(np.array([3, -3]), item(shift=-4)).to_pylist() == [48, -48]
    huge = np.array([HUGE, -HUGE, 5], dtype=object)
    assert decode_steps(huge, item()).to_pylist() == [2**63 - 1, -(2**63) + 1, 5]
    assert decode_steps(huge, item(shift=99)).to_pylist() == [6, -6, 0]


def test_reals_are_steps_times_their_worth() -> None:
    assert decode_steps(np.array([3, -5]), item(shift=1, whole=False)).to_pylist() == [1.5, -2.5]
    huge = np.array([HUGE], dtype=object)
    assert decode_steps(huge, item(shift=100, whole=False)).to_pylist() == [3.0]


def test_a_result_has_the_types_of_the_plan_whatever_the_engine_chose() -> None:
    whole = Column(1, "n", Shape(Kind.INTEGER))
    real = Column(2, "x", Shape(Kind.DOUBLE))
    engine = pa.table(
        {"a": pa.array([1, None], pa.int32()), "b": pa.array([1.5, 2.0], pa.float64())}
    )
    assert cast_columns(engine, (whole, real)).schema == pa.schema(
        [("o0", pa.int64()), ("o1", pa.float64())]
    )


CHANNELS = "SELECT channel, COUNT(*) FROM orders GROUP BY channel"


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("surplus", [-4, -1, 1, 4])
def test_public_groups_have_one_row_each(surplus: int, parts: int) -> None:
    """Neither fewer nor more: a row that was not asked for may be another group than the public ones.

    It catches an engine whose rows are taken as they come, and which adds some.
    """
    names = ["phone", "shop", "web", None]
    part = next(iter(price(plan_of(CHANNELS, SHOP), PURE).parts))
    assert part.measurement.cells is not None
    assert part.measurement.cells.count == len(names)

    def said(count: int) -> object:
        keys = (names + ["fax"] * 4)[:count]
        whole = pa.table(
            {"k0": pa.array(keys, pa.string()), "p0": pa.array([5] * count, pa.int64())}
        )
        cuts = [
            whole.slice(i * count // parts, (i + 1) * count // parts - i * count // parts)
            for i in range(parts)
        ]
        return noise(ExactRows(iter(cuts)), part, Seeded(1))

    said(len(names))
    with pytest.raises(EngineFailed):
        said(len(names) + surplus)


def test_a_count_of_two_halves_keeps_its_sign_and_fits_64_bits() -> None:
    far = 2**62
    halves = Halves(other=0, reach=1, one=1, coarse=1, l1=Fraction(1))
    one = np.array([-500, 500, far, -far, 3], dtype=object)
    pair = (one, one + np.array([0, 0, 0, 0, 1]))
    noised = HalfNoise(Seeded(1), {0: pair})
    found = noised.released(1, one, one, Noised(Rows(), 0, ONE, TINY, halves))
    assert found.type == pa.int64()
    assert found.to_pylist() == [-1000, 1000, far, -far, 7]
