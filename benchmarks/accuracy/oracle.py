"""How far answers would be off under bounds that somebody chose who knows the truth.

Each question is answered by one bound for a unit's whole vector of cells: its L1 norm for Laplace noise,
its L2 norm for Gaussian noise. An average is a centre (the true mean), signed totals around it and a count, with the
budget divided between them. A median is the exponential mechanism over weighted rows, and its error one of rank.
Nothing is drawn: errors are expected ones. This is a yardstick, and no mechanism: it looks at the data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks.accuracy.cells import (
    LEAST,
    LEAST_OF_RANK,
    SIDES,
    Contributions,
    Floats,
    rank_errors,
)
from benchmarks.accuracy.suites import Question

Noise = Literal["laplace", "gaussian"]
QUANTILES = np.r_[0.5:0.9:9j, 0.9:0.99:10j, 0.99:1:11j]
COUNTS = (0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 1)
TOTALS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995, 1)
SHARES = (0.5, 0.65, 0.8)
VOTES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1)
BINS = 16_384


@dataclass(frozen=True)
class Guarantee:
    """What one answer may cost: ``epsilon`` with Laplace noise, ``rho`` with Gaussian (0: not allowed)."""

    epsilon: float
    rho: float

    @property
    def noises(self) -> tuple[Noise, ...]:
        """What is allowed."""
        return ("laplace", "gaussian") if self.rho else ("laplace",)

    def deviation(self, noise: Noise, bound: float, share: float = 1.0) -> float:
        """The standard deviation of noise in a cell for a share of the guarantee."""
        if noise == "laplace":
            return math.sqrt(2) * bound / (self.epsilon * share)
        return bound / math.sqrt(2 * self.rho * share)

    def choices(self, noise: Noise, bound: float) -> float:
        """The scale of ranks in choices whose weights have this norm."""
        if noise == "laplace":
            return bound / self.epsilon
        return bound / math.sqrt(8 * self.rho)


@dataclass(frozen=True)
class Tuned:
    """The least error (a geometric mean over cells), and under which noise and bounds it is reached."""

    error: float
    noise: Noise
    bounds: Sequence[float]


def tune(question: Question, found: Contributions, guarantee: Guarantee) -> Tuned | None:
    """The best bounds; None for keys, which have no error."""
    if question.kind == "found":
        return None
    tuners = {"avg": _average, "median": _median}
    tuner = tuners.get(question.kind, _total)
    options = [tuner(question, found, guarantee, noise) for noise in guarantee.noises]
    return min(options, key=lambda option: option.error)


def mean_error(variance: Floats, bias: Floats, truth: Floats, least: float = LEAST) -> float:
    """The geometric mean over cells of the root mean square error, as a share of the truth."""
    errors = np.sqrt(variance + bias * bias) / np.abs(truth)
    return float(np.exp(np.mean(np.log(np.maximum(errors, least)))))


def _order(noise: Noise) -> int:
    return 1 if noise == "laplace" else 2


def _total(question: Question, found: Contributions, guarantee: Guarantee, noise: Noise) -> Tuned:
    values, order = found.added(question), _order(noise)
    norms = found.norms(values, order)
    best = Tuned(math.inf, noise, ())
    for bound in np.unique(np.quantile(norms[norms > 0], QUANTILES)):
        deviation = guarantee.deviation(noise, bound)
        bias = found.clipped(values, order, bound) - found.truth
        error = mean_error(np.full(found.size, deviation**2), bias, found.truth)
        best = min(best, Tuned(error, noise, (float(bound),)), key=lambda option: option.error)
    return best


def _average(question: Question, found: Contributions, guarantee: Guarantee, noise: Noise) -> Tuned:
    assert question.range is not None
    order, widest = _order(noise), (question.range[1] - question.range[0]) ** 2 / 4
    centre = float(found.sums.sum() / found.rows.sum())
    totals = found.sums - centre * found.rows
    counts, norms = found.norms(found.rows, order), found.norms(totals, order)
    rows_at = {b: found.clipped(found.rows, order, b) for b in set(np.quantile(counts, COUNTS))}
    sums_at = {b: found.clipped(totals, order, b) for b in set(np.quantile(norms, TOTALS))}
    best = Tuned(math.inf, noise, ())
    for share, (most, rows), (reach, sums) in itertools.product(
        SHARES, rows_at.items(), sums_at.items()
    ):
        of_rows = guarantee.deviation(noise, most, 1 - share)
        of_sums = guarantee.deviation(noise, reach, share)
        mean = sums / np.maximum(rows, 1)
        variance = (of_sums**2 + (mean * of_rows) ** 2) / np.maximum(rows, of_rows / 2) ** 2
        error = mean_error(np.minimum(variance, widest), centre + mean - found.truth, found.truth)
        if error < best.error:
            best = Tuned(error, noise, (centre, float(most), float(reach), share))
    return best


def _median(question: Question, found: Contributions, guarantee: Guarantee, noise: Noise) -> Tuned:
    assert question.range is not None
    options = _options(found.row_values, *question.range)
    norms = found.norms(found.rows, _order(noise))
    cells = [found.row_cells == cell for cell in range(found.size)]
    values = [found.row_values[own] for own in cells]
    off = [rank_errors(options, np.sort(inside)) ** 2 for inside in values]
    best = Tuned(math.inf, noise, ())
    for bound in np.unique(np.quantile(norms, VOTES)):
        weights = np.minimum(1.0, bound / norms)[found.row_units]
        scale = guarantee.choices(noise, float(bound))
        squares = [
            _expected(options, inside, weights[own], scale, squared)
            for own, inside, squared in zip(cells, values, off, strict=True)
        ]
        certain, whole = np.zeros(found.size), np.ones(found.size)
        error = mean_error(np.array(squares), certain, whole, LEAST_OF_RANK)
        if error < best.error:
            best = Tuned(error, noise, (float(bound),))
    return best


def _options(values: Floats, low: float, high: float) -> Floats:
    """What may be chosen: the values that there are, or a fine grid where they are many."""
    distinct = np.unique(values)
    return distinct if distinct.size <= BINS else np.linspace(low, high, BINS)


def _expected(
    options: Floats, values: Floats, weights: Floats, scale: float, squared: Floats
) -> float:
    """The expected square of the rank error of an option that is chosen by its weighted rank."""
    order = np.argsort(values, kind="stable")
    ranks = np.r_[0.0, np.cumsum(weights[order])]
    below, up_to = (ranks[np.searchsorted(values[order], options, side)] for side in SIDES)
    half = ranks[-1] / 2
    distance = np.maximum(np.maximum(below - half, half - up_to), 0.0)
    chances = np.exp(-(distance - distance.min()) / scale)
    return float(np.sum(chances * squared) / chances.sum())
