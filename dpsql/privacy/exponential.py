"""The exponential mechanism: one of many weighted candidates by its utility, drawn exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpsql.privacy.bernoulli import exp_minus_bounds
from dpsql.privacy.entropy import Randomness

Integers = npt.NDArray[np.int64] | npt.NDArray[np.object_]
HEAD_BITS = 64
UTILITY_SLACK = 2.0**-38
LARGEST_CHOICE_SCALE = 1 << 200
_BLOCK = 1 << 20
"""The number of cells that are weighted at a time."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of all groups, one group after the other.

    Candidate i stands for ``widths[i]`` equal candidates of utility ``utilities[i]``. ``sizes`` are
    the numbers of candidates in each group. Differences of utilities within a group must fit their
    type.
    """

    utilities: Integers
    widths: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        """Every group must have a candidate of positive width."""
        if len(self.utilities) != len(self.widths) or self.sizes.sum() != len(self.widths):
            raise ValueError("utilities, widths and sizes do not fit together")
        if len(self.sizes) and (self.sizes.min() < 1 or self.widths.min() < 0):
            raise ValueError("a group without candidates, or a negative width")
        if len(self.sizes) and np.add.reduceat(self.widths, self.starts).min() < 1:
            raise ValueError("a group whose candidates have no width")

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """The position of the first candidate of each group."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes, dtype=np.int64)

    def gaps(self) -> Integers:
        """How far each candidate is below the best of its group."""
        if not len(self.sizes):
            return self.utilities
        least = self.utilities.min()
        useful = np.where(self.widths > 0, self.utilities, least)
        best = np.maximum.reduceat(useful, self.starts)
        return np.asarray(np.repeat(best, self.sizes) - useful)


def check_choice_scale(scale: Fraction) -> None:
    """Refuse a scale outside 2**-200 .. 2**200, the range that the float arithmetic covers."""
    if not Fraction(1, LARGEST_CHOICE_SCALE) <= scale <= LARGEST_CHOICE_SCALE:
        raise ValueError(f"no exponential mechanism of scale {scale}")


def choose(
    entropy: Randomness, candidates: Candidates, scale: Fraction, slack: float = UTILITY_SLACK
) -> npt.NDArray[np.int64]:
    """The position, within its group, of one candidate for each group.

    Claim: candidate i of a group is chosen with probability exactly proportional to widths[i] *
        exp(utilities[i] / scale), independently of other groups.
    Assumes: ``np.exp`` errs by less than 2**-40 of its value; the randomness is uniform.
    Argument: the first candidate whose cumulative weight exceeds U times the total has that
        probability. Exponents are within 2**-41 of the exact ones wherever their exponential is
        not below 2**-1000 (|x| <= 745, two roundings), so a float weight errs by less than 2**-39
        of itself, and a partial sum of n of them by less than n * 2**-52 of the total on top. The
        margin is ``UTILITY_SLACK`` plus twice that. If U times the total is farther than the margin
        from both ends of the chosen candidate, exact arithmetic decides the same. Otherwise the
        same U, extended by further bits, is compared with enclosures of the exact sums until it
        lies within one candidate.

    >>> from dpsql.privacy.entropy import Entropy
    >>> three = np.array([0, 1000, 0]), np.array([1, 1, 5]), np.array([3])
    >>> choose(Entropy(), Candidates(*three), Fraction(1)).tolist()
    [1]
    """
    check_choice_scale(scale)
    gaps, starts, sizes = candidates.gaps(), candidates.starts, candidates.sizes
    weights = np.exp(gaps.astype(np.float64) * -float(1 / scale)) * candidates.widths
    heads = entropy.u64(len(sizes))
    chosen = np.zeros(len(sizes), dtype=np.int64)
    for rows in _alike(sizes):
        wide = int(sizes[rows].max())
        places = starts[rows, None] + np.arange(wide)
        inside = np.arange(wide) < sizes[rows, None]
        sums = np.cumsum(np.where(inside, weights[np.where(inside, places, 0)], 0.0), axis=1)
        total = sums[:, -1]
        target = heads[rows].astype(np.float64) * 2.0**-HEAD_BITS * total
        at = np.minimum((sums <= target[:, None]).sum(axis=1), sizes[rows] - 1)
        row = np.arange(len(rows))
        below = np.where(at > 0, sums[row, at - 1], 0.0)
        margin = (slack + wide * 2.0**-51) * total
        near = (target - below < margin) | (sums[row, at] - target < margin)
        chosen[rows] = at
        for i in rows[near]:
            part = slice(starts[i], starts[i] + sizes[i])
            chosen[i] = _exactly(
                entropy, int(heads[i]), gaps[part].tolist(), candidates.widths[part].tolist(), scale
            )
    return chosen


def _alike(sizes: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """The groups in blocks of similar size, so that a block has few empty cells."""
    classes = np.frexp(sizes.astype(np.float64))[1]
    for each in np.unique(classes):
        rows = np.flatnonzero(classes == each)
        step = max(1, _BLOCK >> int(each))
        yield from (rows[i : i + step] for i in range(0, len(rows), step))


def _exactly(
    entropy: Randomness, head: int, gaps: list[int], widths: list[int], scale: Fraction
) -> int:
    """The candidate in which the uniform that begins with ``head`` lies, found by enclosures."""
    known, bits = HEAD_BITS, 128
    while True:
        found = _settled(head, known, _sums(gaps, widths, scale, bits))
        if found is not None:
            return found
        head = head << HEAD_BITS | entropy.bits(HEAD_BITS)
        known, bits = known + HEAD_BITS, bits * 2


def _sums(gaps: list[int], widths: list[int], scale: Fraction, bits: int) -> list[tuple[int, int]]:
    """Integers below and above each cumulative weight times ``2**bits``, in order of candidates."""
    bounds = {g: exp_minus_bounds(g / scale, bits) if g else (1 << bits,) * 2 for g in {*gaps}}
    low = high = 0
    found = []
    for gap, width in zip(gaps, widths, strict=True):
        low, high = low + bounds[gap][0] * width, high + bounds[gap][1] * width
        found.append((low, high))
    return found


def _settled(head: int, known: int, sums: list[tuple[int, int]]) -> int | None:
    """The one candidate in which all uniforms beginning with ``head`` lie, or None."""
    low, high = sums[-1]
    least, most = head * low, (head + 1) * high
    below = 0
    for i, (start, end) in enumerate(sums):
        if most <= start << known:
            return i if below << known <= least else None
        below = end
    return None
