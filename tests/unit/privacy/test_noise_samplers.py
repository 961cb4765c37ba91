from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from noise_streams import Recorded, Seeded

from dpsql.privacy.discrete_gaussian import sample_discrete_gaussian
from dpsql.privacy.discrete_laplace import sample_discrete_laplace
from dpsql.privacy.entropy import Entropy
from dpsql.privacy.geometric import GeometricTable, sample_geometric
from dpsql.privacy.truncated_geometric import sample_truncated_geometric


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**40 + 1)])
def test_scales_out_of_range_are_refused(scale: Fraction) -> None:
    with pytest.raises(ValueError, match="scale of noise"):
        sample_discrete_laplace(Entropy(), 1, scale)


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1), Fraction(2**80 + 1)])
def test_variances_out_of_range_are_refused(variance: Fraction) -> None:
    with pytest.raises(ValueError, match="variance of noise"):
        sample_discrete_gaussian(Entropy(), 1, variance)


@pytest.mark.parametrize(
    ("epsilon", "bound"),
    [(1, -1), (1, 2**62 + 1), (0, 5), (-1, 5), (Fraction(1, 2**41), 5)],
)
def test_truncations_out_of_range_are_refused(epsilon: Fraction, bound: int) -> None:
    with pytest.raises(ValueError, match="noise"):
        sample_truncated_geometric(Entropy(), 1, Fraction(epsilon), bound)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 20_000])
def test_every_length_is_served(n: int) -> None:
    for draws in (
        sample_discrete_laplace(Seeded(n), n, Fraction(10)),
        sample_discrete_gaussian(Seeded(n), n, Fraction(10)),
        sample_truncated_geometric(Seeded(n), n, Fraction(1), 3),
        sample_truncated_geometric(Seeded(n), n, Fraction(1), 2),
    ):
        assert draws.dtype == np.int64
        assert draws.shape == (n,)
        assert n < 60 or draws.std() > 0.5


def test_vanishing_noise_is_zero_and_huge_noise_is_wide() -> None:
    for tiny in (Fraction(1, 10**9), Fraction(1, 10**400)):
        assert not sample_discrete_laplace(Seeded(1), 10_000, tiny).any()
        assert not sample_discrete_gaussian(Seeded(2), 10_000, tiny).any()
    assert not sample_truncated_geometric(Seeded(3), 10_000, Fraction(10**9), 5).any()
    assert not sample_truncated_geometric(Seeded(3), 10_000, Fraction(1), 0).any()
    for wide in (
        sample_discrete_laplace(Seeded(4), 50_000, Fraction(2**40)),
        sample_discrete_gaussian(Seeded(5), 50_000, Fraction(2**80)),
    ):
        assert (
            0.9 < np.sqrt((wide / 2.0**40) ** 2).mean() / (1 if wide.max() > 2**43 else 0.8) < 1.1
        )


def test_truncation_holds_however_flat_the_law() -> None:
    for epsilon, bound in ((Fraction(1, 10**6), 3), (Fraction(1, 2**40), 2**40), (Fraction(5), 1)):
        draws = sample_truncated_geometric(Seeded(6), 5_000, epsilon, bound)
        assert abs(draws).max() <= bound
        assert min(draws.max(), -draws.min()) >= 0.99 * bound


def test_a_draw_that_does_not_fit_is_an_error_not_a_wrong_number() -> None:
    table = GeometricTable(Fraction(1, 2**40))
    zeros = Recorded()  # zeros are below every probability: Q never stops
    with pytest.raises(OverflowError, match="2\\*\\*62"):
        sample_geometric(zeros, 1, table)


def test_known_answers() -> None:
    """The same bytes give the same numbers, on every machine and in every version."""
    assert sample_discrete_laplace(Seeded(7), 12, Fraction(5, 2)).tolist() == LAPLACE
    assert sample_discrete_laplace(Seeded(7), 12, Fraction(10**6)).tolist() == LAPLACE_WIDE
    assert sample_discrete_gaussian(Seeded(7), 12, Fraction(7, 3)).tolist() == GAUSSIAN
    assert sample_truncated_geometric(Seeded(7), 12, Fraction(1, 2), 9).tolist() == TRUNCATED
    assert sample_truncated_geometric(Seeded(7), 12, Fraction(1, 50), 9).tolist() == FLAT


LAPLACE = [-2, 3, -3, 2, 0, 1, -1, -1, 2, 8, -2, -2]
LAPLACE_WIDE = [
    698676,
    -90354,
    -376756,
    -394855,
    -1493,
    -2935409,
    1370391,
    229598,
    -1580731,
    -882603,
    -213137,
    2399527,
]
GAUSSIAN = [0, -1, 0, -1, 0, -1, 0, 0, -2, -1, -1, 0]
TRUNCATED = [-2, -3, 3, 0, 1, 1, -1, -1, 2, -8, 2, 2]
FLAT = [3, 8, -5, 6, 4, -6, -8, 4, -9, -2, 9, -8]


def test_a_tail_that_ties_is_settled_by_more_bits() -> None:
    table = GeometricTable(Fraction(50))
    assert table.width == 0
    for more, outcome in ((b"\xff" * 8, 0), (bytes(8) + b"\xff" * 32, 1)):
        stream = Recorded(bytes(8) + more)  # the first 64 digits of exp(-50) are zeros
        assert sample_geometric(stream, 1, table).tolist() == [outcome]


def test_known_bytes_one_by_one() -> None:
    """Scale 1/2 by hand: bits of the magnitude, its tail, zero or not, the sign."""
    table = GeometricTable(Fraction(2))
    words = [2**31] * table.width  # no bit set: 1/(1 + e**2) is below a half
    words[1] = 0  # but the second, so the geometric number is 2
    data = b"".join(word.to_bytes(4, "little") for word in words)
    data += (2**63).to_bytes(8, "little")  # no tail
    data += (2**32 - 1).to_bytes(4, "little")  # not zero
    plus, minus = Recorded(data + b"\x01"), Recorded(data + b"\x02")
    assert sample_discrete_laplace(plus, 1, Fraction(1, 2)).tolist() == [3]
    assert sample_discrete_laplace(minus, 1, Fraction(1, 2)).tolist() == [-3]
    zero = Recorded(data[:-4] + bytes(4) + b"\x01")
    assert sample_discrete_laplace(zero, 1, Fraction(1, 2)).tolist() == [0]
    assert plus.used == minus.used == zero.used == 4 * table.width + 13
