"""Utilities of the bins among which a value is chosen by rank: what its price is about."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsql.price.priced import Chosen
from dpsql.release.choose import histograms, utilities

BINS = pa.list_(pa.struct([("b", pa.int64()), ("n", pa.int64())]))


def ranks(lists: pa.ChunkedArray, item: Chosen) -> list[npt.NDArray[np.float64]]:
    """The utility of every bin, for each group's list of bins with rows."""
    found = histograms(lists)
    runs, units = utilities(found, item)
    result, start, first = [], 0, 0
    for size in found.sizes.tolist():
        bins = found.bins[first : first + size]
        values = np.repeat(
            runs[start : start + 2 * size + 1].astype(np.float64) / units, _widths(bins, item)
        )
        result.append(values)
        start, first = start + 2 * size + 1, first + size
    return result


def _widths(bins: npt.NDArray[np.int64], item: Chosen) -> list[int]:
    widths, last = [], 0
    for b in bins.tolist():
        widths += [b - last, 1]
        last = b + 1
    return [*widths, item.buckets.count - last]


def span(one: object, other: object, item: Chosen) -> float:
    """How far the differences between utilities move from one list of bins to another."""
    before, after = ranks(pa.chunked_array([pa.array([one, other], BINS)]), item)
    moves = after - before
    return float(moves.max() - moves.min())
