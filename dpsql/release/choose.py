"""Values chosen by rank, from the weight of the rows of each group in each bin.

Claim: a unit whose rows weigh w in a group moves each utility there by at most w times the
    steepness, so that differences of utilities move by at most twice that.
Assumes: weights are those of ``bound.bins``.
Argument: the utility of a bin is minus the distance between a target rank and the ranks F .. F'
    that the bin covers. A row of weight w moves the target by a share s of w, F by w where it
    comes before the bin, and F' by w where it comes before or in it. So a distance moves by s * w
    or (1 - s) * w at most. For quantiles s is their fraction; for a maximum it is between 1/2
    and 1, for a minimum between 0 and 1/2. Rows add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpsql.bound.buckets import Buckets
from dpsql.catalog.statistic import Mode, Quantile
from dpsql.policy.types import Kind
from dpsql.price.priced import Chosen
from dpsql.privacy.entropy import Randomness
from dpsql.privacy.exponential import Candidates
from dpsql.release.rows import ARROW

Integers = npt.NDArray[np.int64] | npt.NDArray[np.object_]
_SAFE = 2.0**61
_ROOM = 8
"""A table of all bins is used if it has at most this many times the entries that are listed."""
_FRACTION_BITS = 30
"""The bits of a random place inside a bin of a continuous range."""


@dataclass(frozen=True, slots=True)
class Histograms:
    """Non-empty bins with their weights, in order, group after group; ``sizes`` bins per group."""

    bins: npt.NDArray[np.int64]
    weights: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

    @property
    def groups(self) -> npt.NDArray[np.int64]:
        """The group of each bin."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def histograms(column: pa.ChunkedArray) -> Histograms:
    """Read a column of lists of bins and weights; NULL counts as an empty list.

    A bin may be listed several times; its weight is the sum of all entries.
    """
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    sizes = np.asarray(pc.fill_null(pc.list_value_length(array), 0)).astype(np.int64)
    pairs = pc.list_flatten(array)
    bins, weights = (np.asarray(pairs.field(i)).astype(np.int64) for i in (0, 1))
    if not len(bins):
        return Histograms(bins, weights, sizes)
    low, count = int(bins.min()), len(sizes)
    span = int(bins.max()) - low + 1
    groups = np.repeat(np.arange(count), sizes)
    merged = _dense if span * count <= _ROOM * len(bins) else _sorted
    return merged(bins - low, groups, weights, (low, span, count))


def _dense(
    bins: npt.NDArray[np.int64], groups: npt.NDArray[np.int64], weights: npt.NDArray[np.int64],
    shape: tuple[int, int, int],
) -> Histograms:  # fmt: skip
    """Bins in order, added up in a table of all bins, in a third of the time that sorting takes."""
    low, span, count = shape
    places = groups * span + bins
    table, listed = np.zeros(span * count, dtype=np.int64), np.zeros(span * count, dtype=np.bool_)
    np.add.at(table, places, weights)
    listed[places] = True
    at = np.flatnonzero(listed)
    sizes = np.count_nonzero(listed.reshape(count, span), axis=1)
    starts = np.repeat(np.arange(count) * span - low, sizes)
    return Histograms(at - starts, table[at], sizes.astype(np.int64))


def _sorted(
    bins: npt.NDArray[np.int64], groups: npt.NDArray[np.int64], weights: npt.NDArray[np.int64],
    shape: tuple[int, int, int],
) -> Histograms:  # fmt: skip
    """Bins in order, by sorting; group and bin as one number if it fits, which is much faster."""
    low, span, count = shape
    fits = span * count < 2**62
    order = np.argsort(groups * span + bins) if fits else np.lexsort((bins, groups))
    bins, groups = bins[order], groups[order]
    new = np.ones(len(bins), dtype=np.bool_)
    new[1:] = (bins[1:] != bins[:-1]) | (groups[1:] != groups[:-1])
    first = np.flatnonzero(new)
    sizes = np.bincount(groups[first], minlength=count).astype(np.int64)
    return Histograms(bins[first] + low, np.add.reduceat(weights[order], first), sizes)


def choose_values(column: pa.ChunkedArray, item: Chosen, entropy: Randomness) -> pa.Array:
    """One value for each group."""
    found = histograms(column)
    slots = _slots(found, item.buckets.count)
    ranks, units = utilities(found, item)
    if item.prior:
        each: Integers = np.asarray(np.repeat(ranks, slots.widths))
        return _values(_weighed(each, units, item, entropy), item, entropy)
    among = Candidates(ranks, slots.widths, 2 * found.sizes + 1)
    at = among.starts + item.noise.choose(entropy, among, units)
    within = entropy.u64(len(at)) % slots.widths[at].astype(np.uint64)
    return _values(slots.firsts[at] + within.astype(np.int64), item, entropy)


def _weighed(
    ranks: Integers, units: int, item: Chosen, entropy: Randomness
) -> npt.NDArray[np.int64]:
    """One bin for each group, where bins differ in how much they count beforehand."""
    many = len(item.prior)
    groups = len(ranks) // many
    widths = np.tile(np.array(item.prior, dtype=np.int64), groups)
    among = Candidates(ranks, widths, np.full(groups, many, dtype=np.int64))
    return item.noise.choose(entropy, among, units)


@dataclass(frozen=True, slots=True)
class _Slots:
    """Runs of bins with one utility: a gap before each non-empty bin, the bin, and a last gap."""

    firsts: npt.NDArray[np.int64]
    widths: npt.NDArray[np.int64]


def _slots(found: Histograms, count: int) -> _Slots:
    groups, total = found.groups, 2 * len(found.bins) + len(found.sizes)
    before = 2 * np.arange(len(found.bins)) + groups
    after = 2 * np.cumsum(found.sizes) + np.arange(len(found.sizes))
    firsts, ends = np.zeros(total, dtype=np.int64), np.zeros(total, dtype=np.int64)
    ends[before], ends[before + 1], ends[after] = found.bins, found.bins + 1, count
    firsts[before + 1], firsts[before + 2] = found.bins, found.bins + 1
    return _Slots(firsts, ends - firsts)


def utilities(found: Histograms, item: Chosen) -> tuple[Integers, int]:
    """The utility of each run of bins, in units, and the number of units of a row of weight 1.

    For a mode the utility is the weight of the bin, which a row of weight w raises by w or leaves
    as it is.
    """
    if isinstance(item.statistic, Mode):
        counts = np.zeros(2 * len(found.bins) + len(found.sizes), dtype=np.int64)
        counts[2 * np.arange(len(found.bins)) + found.groups + 1] = found.weights
        return counts, 1
    fraction = item.statistic.fraction
    units = 2 * fraction.denominator
    weights, groups = _safely(found.weights, units), found.groups
    ends = np.cumsum(found.sizes)
    running = _running(weights)
    start = running[ends - found.sizes]
    total = running[ends] - start
    below = running[:-1] - start[groups]
    first = 2 * np.arange(len(found.bins)) + groups
    last = 2 * ends + np.arange(len(found.sizes))
    low, high = (_zeros(2 * len(found.bins) + len(found.sizes), weights) for _ in range(2))
    low[first], high[first] = below, below
    low[first + 1], high[first + 1] = below, below + weights
    low[last], high[last] = total, total
    target: Integers = np.asarray(
        np.repeat(_targets(total, item, item.statistic), 2 * found.sizes + 1)
    )
    return -np.maximum(np.maximum(units * low - target, target - units * high), 0), units


def _safely(weights: npt.NDArray[np.int64], units: int) -> Integers:
    """The weights in a type that holds all sums of them."""
    fits = float(weights.astype(np.float64).sum()) * units < _SAFE
    return weights if fits else weights.astype(object)


def _running(weights: Integers) -> Integers:
    """The total weight before each bin, and after the last."""
    sums = _zeros(len(weights) + 1, weights)
    sums[1:] = np.cumsum(weights)
    return sums


def _zeros(count: int, like: Integers) -> Integers:
    return np.asarray(np.zeros(count, dtype=like.dtype))


def _targets(total: Integers, item: Chosen, quantile: Quantile) -> Integers:
    """The target rank in each group: inside the wanted row, half a row from its end."""
    one = 1 << item.shift
    fraction = quantile.fraction
    if quantile.extreme:
        depth = 2 * max(item.depth, one) - one
        if fraction:
            return np.asarray(np.maximum(2 * total - depth, total))
        return np.asarray(np.minimum(total, depth))
    if not fraction:
        return np.asarray(total * 0 + one)
    return np.asarray(2 * fraction.numerator * total - one)


def _values(bins: npt.NDArray[np.int64], item: Chosen, entropy: Randomness) -> pa.Array:
    """A uniformly random value of each bin, in the type that is shown."""
    at, kind = item.buckets, item.statistic.kind
    places = entropy.u64(len(bins))
    if at.members is not None:
        listed = [float(m) if isinstance(m, Fraction) else m for m in at.members]
        return pa.array(listed, ARROW[kind]).take(pa.array(bins))
    if at.last is None:
        return pa.array(_anywhere(bins, places, at), ARROW[kind])
    whole = _whole(bins, places, at)
    if kind is Kind.DATE:
        return pa.array(whole.astype(np.int32), pa.int32()).cast(pa.date32())
    if kind is Kind.TIMESTAMP:
        return pa.array(whole, pa.int64()).cast(ARROW[kind])
    if kind is Kind.DOUBLE:
        return pa.array(whole.astype(np.float64), pa.float64())
    return pa.array(whole, pa.int64())


def _anywhere(
    bins: npt.NDArray[np.int64], places: npt.NDArray[np.uint64], at: Buckets
) -> npt.NDArray[np.float64]:
    low, high = float(at.origin), float(at.origin + at.width * at.count)
    inside = (places >> np.uint64(64 - _FRACTION_BITS)).astype(np.float64) * 2.0**-_FRACTION_BITS
    values = low + (bins.astype(np.float64) + inside) * float(at.width)
    return np.asarray(np.clip(values, low, high))


def _whole(
    bins: npt.NDArray[np.int64], places: npt.NDArray[np.uint64], at: Buckets
) -> npt.NDArray[np.int64]:
    """Random whole values of the bins; computed in Python's integers if 64 bits may overflow."""
    assert at.last is not None
    first, width, last = int(at.origin), int(at.width), at.last
    fits = max(abs(first), abs(last), width) < 2**61
    kind = (np.int64, np.uint64) if fits else (object, object)
    starts = first + bins.astype(kind[0]) * width
    steps = -(-np.minimum(width, last + 1 - starts) // at.grain)
    within = places.astype(kind[1]) % steps.astype(kind[1])
    return np.asarray(starts + within.astype(kind[0]) * at.grain, dtype=np.int64)
