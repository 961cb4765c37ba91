"""Levels of one answer that add up, if the session asks for it (``SET dpsql.consistent = on``).

A total that is measured beside its parts, and the sum of the parts, are two noisy numbers for the
same exact number. Here all levels are replaced by their joint least squares estimate, in which each
number is weighted by the inverse of its variance. Let x be the released finest numbers, D their
variances, y the released coarser numbers, V the variances of y, and A the map with which the exact
finest numbers add up to the exact coarser ones. Then

    G = A D A' + V,    x* = x + D A' G^-1 (y - A x),    y* = A x*.

Claim: this costs nothing. No number has a larger expected error than before (whole numbers: larger
    by at most half a percent, see ``AS_GOOD``). Levels add up: whole numbers exactly, others up to
    the rounding of doubles.
Assumes: rows have declared values, as for every sum of finer groups (``reuse.pieces``).
Argument: the result is a function of released numbers, public keys and public laws. The noises are
    independent, since a hierarchy is left unchanged if any of its numbers was added up from finer
    groups. So least squares gives the unbiased linear estimate of least variance, for the finest
    numbers and for every sum of them. The released number is one of the unbiased linear estimates,
    so the result is no worse. The variance v of a released number becomes v w, where w is the
    weight that its own noise keeps. (Let g be the entry of G^-1 for two coarser groups. For a
    coarser group, w = 1 - v g, with g its entry with itself. For a finest group with variance d, w
    = 1 - d times the sum of g over all pairs of coarser groups that it is in.) Whole numbers are
    rounded along running totals: each becomes the difference of two rounded running totals, in an
    order that keeps the finest groups of each coarser group together where levels form a tree. A
    sum over one run of neighbouring groups is then off by at most one through rounding, with a
    variance of a sixth. Another sum is off by so much for each of its runs. If in any group this
    variance is more than the variance that was gained, and not negligible, all numbers stay as
    released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsql.execution import check
from dpsql.price.priced import PricedPlan
from dpsql.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.privacy.mechanisms.noise_sum import NoiseSum, NoiseTerm
from dpsql.release.postprocess_sql import write_places
from dpsql.release.rows import ColumnNoise, NoisyRows
from dpsql.reuse.pieces import AS_GOOD, Finer, Piece, clips, pieces

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Runner = Callable[[str, Mapping[str, pa.Table]], pa.Table]
MOST_TOTALS = 1000
"""The most coarser groups in all, as a matrix with so many rows is inverted.

With more groups, levels stay as released.
"""
WHOLE = 2.0**52
"""Running totals below this are exact whole numbers as doubles."""
_ROUNDED = Fraction(1, 6)
"""The variance of the difference of two roundings."""
_GRAIN = 128
"""Weights in laws are rounded up to multiples of ``1 / _GRAIN``, so that few laws differ."""
_NEARLY_NONE = DiscreteLaplace(Fraction(1, 100))
_MANY = 64


@dataclass(frozen=True, slots=True)
class Level:
    """A statistic, by measurement and position, and the map from finest groups to its groups."""

    part: int
    column: int
    how: Finer


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A statistic of the finest groups, and of coarser ones."""

    part: int
    column: int
    coarser: tuple[Level, ...]


@dataclass(frozen=True, slots=True)
class _Column:
    """A released column, with the law of each row's noise."""

    values: Floats
    noise: ColumnNoise
    whole: bool

    @property
    def laws(self) -> Places:
        """Which law each row has."""
        of_row = self.noise.of_row
        return np.zeros(len(self.values), np.int64) if of_row is None else of_row

    @property
    def variances(self) -> Floats:
        return np.array([law.standard_deviation() ** 2 for law in self.noise.laws])[self.laws]


@dataclass(frozen=True, slots=True)
class _Coarser:
    """A coarser level; ``of`` is the position of the group of each finest group, or -1."""

    column: _Column
    of: Places

    def runs(self, order: Places) -> Places:
        """The number of runs of neighbouring finest groups of which each group consists."""
        of = self.of[order]
        starts = np.concatenate(([True], of[1:] != of[:-1])) & (of >= 0)
        return np.bincount(of[starts], minlength=len(self.column.values))

    def sums(self, finest: Floats) -> Floats:
        """The finest numbers added up to this level."""
        inside = self.of >= 0
        return np.bincount(self.of[inside], finest[inside], len(self.column.values)).astype(float)


def make_consistent(
    priced: PricedPlan, noisy: tuple[NoisyRows, ...], run: Runner
) -> tuple[NoisyRows, ...]:
    """The released tables with levels that add up."""
    tables = list(noisy)
    for found in hierarchies(priced):
        check()
        places = [(found.part, found.column), *((c.part, c.column) for c in found.coarser)]
        if any(tables[part].summed for part, _ in places):
            continue
        finest, *others = (_column(priced, tables, *place) for place in places)
        levels = [
            _Coarser(column, _of(priced, tables, found.part, level, run))
            for column, level in zip(others, found.coarser, strict=True)
        ]
        for place, column in zip(places, _settled(finest, levels), strict=False):
            _put(priced, tables, place, column)
    return tuple(tables)


def hierarchies(priced: PricedPlan) -> Iterator[Hierarchy]:
    """For each statistic, the finest level from which other levels add up, if there is one.

    Claim: the exact number of each group of a coarser level is the sum of the finest numbers that
        ``how`` maps to it, where rows have declared values.
    Assumes: both levels are measured on the same data.
    Argument: see ``pieces.Coarse.from_finer``. Levels that clip a unit are left out, since clipping
        a total may remove another amount than clipping its parts.
    """
    if len(priced.parts) < 2:
        return
    found = [
        piece
        for piece in pieces(priced, "")
        if piece.coarse is not None and not clips(priced.parts[piece.slots[0].part])
    ]
    for base in dict.fromkeys(piece.base for piece in found if piece.base):
        options = (_over(piece, found) for piece in found if piece.base == base)
        most = max(options, key=lambda option: len(option.coarser))
        if most.coarser:
            yield most


def _over(finest: Piece, found: Sequence[Piece]) -> Hierarchy:
    levels = []
    for piece in found:
        if piece is finest or piece.coarse is None or piece.coarse.base != finest.base:
            continue
        how = piece.coarse.from_finer(finest.about, declared=True)
        if how is not None:
            levels.append(Level(*_place(piece), how))
    return Hierarchy(*_place(finest), tuple(levels))


def _place(piece: Piece) -> tuple[int, int]:
    [slot] = piece.slots
    [column] = slot.columns
    return slot.part, column


def _column(priced: PricedPlan, tables: Sequence[NoisyRows], part: int, column: int) -> _Column:
    noise = tables[part].noise[column]
    assert noise is not None, "numbers that add up are noised"
    values = tables[part].table.column(len(priced.parts[part].measurement.keys) + column)
    doubles = np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)
    return _Column(doubles, noise, pa.types.is_integer(values.type))


def _put(
    priced: PricedPlan, tables: list[NoisyRows], place: tuple[int, int], column: _Column
) -> None:
    part, position = place
    rows = tables[part]
    at = len(priced.parts[part].measurement.keys) + position
    old = rows.table.field(at)
    values = column.values.astype(np.int64) if column.whole else column.values
    noise = (*rows.noise[:position], column.noise, *rows.noise[position + 1 :])
    tables[part] = replace(
        rows, table=rows.table.set_column(at, old, pa.array(values, old.type)), noise=noise
    )


def _of(
    priced: PricedPlan, tables: Sequence[NoisyRows], finest: int, level: Level, run: Runner
) -> Places:
    """The position of the coarser group of each finest group; -1 if it has none."""
    finer = _keyed(tables[finest], len(priced.parts[finest].measurement.keys))
    coarse = _keyed(tables[level.part], len(priced.parts[level.part].measurement.keys))
    sql = write_places(level.how.keys, level.how.conditions)
    found = run(sql, {"finer": finer, "coarser": coarse})
    places = np.full(finer.num_rows, -1, np.int64)
    places[found.column("i").to_numpy()] = found.column("j").to_numpy()
    return places


def _keyed(rows: NoisyRows, keys: int) -> pa.Table:
    """The keys of a table, and the position of each row."""
    places = pa.array(range(rows.table.num_rows), pa.int64())
    arrays = [*(rows.table.column(i) for i in range(keys)), places]
    return pa.table(arrays, names=[*(f"k{i}" for i in range(keys)), "place"])


def _settled(finest: _Column, levels: Sequence[_Coarser]) -> list[_Column]:
    """The finest column and the others after least squares; an empty list if nothing is gained."""
    d, x = finest.variances, finest.values
    if not len(x):
        return []
    v = np.concatenate([level.column.variances for level in levels])
    order = _order(levels)
    runs = [np.ones(len(d), np.int64), *(level.runs(order) for level in levels)]
    if len(v) > MOST_TOTALS or min(d.min(), v.min()) <= 0 or any(0 in each for each in runs):
        return []
    off = np.concatenate([level.column.values - level.sums(x) for level in levels])
    inverse: Floats = np.asarray(np.linalg.inv(_spread(d, levels) + np.diag(v)), np.float64)
    steps, kept = _back(inverse @ off, inverse, levels)
    x = x + d * steps
    places = np.cumsum([len(level.column.values) for level in levels])
    weights = [1 - d * kept, *np.split(1 - v * np.diag(inverse), places[:-1])]
    columns = [finest, *(level.column for level in levels)]
    if finest.whole:
        running = np.rint(np.cumsum(x[order]))
        gained = zip(columns, weights, runs, strict=True)
        if np.abs(running).max() >= WHOLE or any(
            (column.variances * (AS_GOOD**2 - w) < r * float(_ROUNDED)).any()
            for column, w, r in gained
        ):
            return []
        x[order] = np.diff(running, prepend=0.0)
    values = [x, *(level.sums(x) for level in levels)]
    return [
        replace(column, values=value, noise=_noise(column, w, r))
        for column, value, w, r in zip(columns, values, weights, runs, strict=True)
    ]


def _order(levels: Sequence[_Coarser]) -> Places:
    """An order of the finest groups in which those of one coarser group are neighbours.

    Levels with fewer groups come first.
    """
    by_size = sorted(levels, key=lambda level: -len(level.column.values))
    return np.asarray(np.lexsort([level.of for level in by_size]), np.int64)


def _spread(d: Floats, levels: Sequence[_Coarser]) -> Floats:
    """``A D A'``: the variance of the finest groups that each two coarser groups share."""
    return np.block([[_shared(d, one, other) for other in levels] for one in levels])


def _shared(d: Floats, one: _Coarser, other: _Coarser) -> Floats:
    inside = (one.of >= 0) & (other.of >= 0)
    rows, columns = len(one.column.values), len(other.column.values)
    pairs = one.of[inside] * columns + other.of[inside]
    return np.bincount(pairs, d[inside], rows * columns).astype(float).reshape(rows, columns)


def _back(steps: Floats, inverse: Floats, levels: Sequence[_Coarser]) -> tuple[Floats, Floats]:
    """For each finest group, the sums of ``steps`` and of ``inverse`` over its coarser groups."""
    starts = np.cumsum([0, *(len(e.column.values) for e in levels)])
    total, pairs = np.zeros(len(levels[0].of)), np.zeros(len(levels[0].of))
    for one, start in zip(levels, starts, strict=False):
        inside = one.of >= 0
        total += np.where(inside, steps[one.of + start], 0)
        for other, second in zip(levels, starts, strict=False):
            both = inside & (other.of >= 0)
            pairs += np.where(both, inverse[one.of + start, other.of + second], 0)
    return total, pairs


def _noise(column: _Column, weights: Floats, runs: Places) -> ColumnNoise:
    """The law of each row: its own noise times its weight, plus nearly normal noise of others."""
    coarse = np.minimum(np.ceil(weights * _GRAIN), _GRAIN).astype(np.int64)
    each = np.stack([column.laws, coarse, runs if column.whole else runs * 0])
    kinds, of_row = np.unique(each, axis=1, return_inverse=True)
    laws = tuple(_law(column.noise.laws[i], int(w), int(r)) for i, w, r in kinds.T.tolist())
    check()
    return ColumnNoise(laws, None if len(laws) == 1 else np.asarray(of_row, np.int64).reshape(-1))


@lru_cache(maxsize=4096)
def _law(own: NoiseSum, parts: int, runs: int) -> NoiseSum:
    weight = Fraction(max(parts, 1), _GRAIN)
    rest = float(weight * (1 - weight)) * own.standard_deviation() ** 2
    terms = own.scaled(weight)
    if rest > 0:
        step = Fraction(math.sqrt(rest / _MANY))
        terms = (*terms, NoiseTerm(DiscreteGaussian(Fraction(1)), step, count=_MANY))
    if runs:
        terms = (*terms, NoiseTerm(_NEARLY_NONE, count=2 * runs, rounded=True))
    return NoiseSum(terms, own.whole)
